// Package plaintest checks that outputs hold no live links, mentions, images or markup.
package plaintest

import (
	_ "embed" // payloads.txt
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

//go:embed payloads.txt
var payloads string

// Payloads returns texts that try to become links, mentions, images or markup.
func Payloads() []string { return strings.Split(strings.TrimSpace(payloads), "\n") }

var (
	// urls match what every program links in a text.
	urls = regexp.MustCompile("(?i)\\w://[.,:;]*[^\\s\"'`<>).,:;…]|www[.。．｡]")
	// links match what mail programs link besides.
	links = regexp.MustCompile(`(?i)\b(?:mailto|tel|javascript|data|file|skype|search-ms|ms-word):\S|` +
		`[\w-][.。．｡](?:example|com|io|zip|mov|рф|xn--p1ai)\.?(?:[^\pL\pN_.。．｡-]|$)|(?:^|[^\\\w])\\\\[\w-]{2,}|\w@[\w-]+\.\w|\b10\.0\.0\.1\b`)
)

// NoURLs fails if a text has a URL.
func NoURLs(tb testing.TB, s string) {
	tb.Helper()
	if url := urls.FindString(s); url != "" {
		tb.Errorf("%q is a URL in %q", url, s)
	}
}

// NoLinks fails if a mail program may link a part of a text node.
func NoLinks(tb testing.TB, s string) {
	tb.Helper()
	NoURLs(tb, s)
	if link := links.FindString(s); link != "" {
		tb.Errorf("%q is a link in %q", link, s)
	}
}

var parser = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// mentions match references to users, groups and issues.
var mentions = regexp.MustCompile(`@\w|@@|<[!@#]|(?:^|[\s(])#\d|\w#\d`)

// NoMarkdown fails if s has links, images or HTML as Markdown, or mentions in the text
// that a reader sees.
func NoMarkdown(tb testing.TB, s string) {
	tb.Helper()
	source := []byte(s)
	document := parser.Parse(text.NewReader(source))
	var seen strings.Builder
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link, *ast.AutoLink, *ast.Image, *ast.RawHTML, *ast.HTMLBlock, *ast.CodeSpan, *ast.FencedCodeBlock:
			tb.Errorf("a %s in %q", n.Kind(), s)
		case *ast.Text:
			seen.Write(n.Segment.Value(source))
		case *ast.String:
			seen.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if m := mentions.FindString(seen.String()); m != "" {
		tb.Errorf("%q mentions in %q", m, s)
	}
}
