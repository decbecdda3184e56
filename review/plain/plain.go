// Package plain makes text of a change or a model plain: it shows hidden characters and
// breaks everything that a program would turn into a link or a mention. Each output then
// escapes its own markup.
//
// Broken text stays readable: https[:]//evil[.]example, eve[at]evil[.]example,
// [\\]host\share.
package plain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
)

// Text returns s without links and hidden characters, cut to limit characters.
func Text(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return breakLinks(visible(s)) })
}

// Line is [Text] on one line.
func Line(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return strings.Join(strings.Fields(breakLinks(visible(s))), " ") })
}

// Markdown escapes what [Text] or [Line] returned for an output that renders Markdown, so
// that it reads the same there.
func Markdown(s string) string { return markdown.Replace(reference.ReplaceAllString(s, "(#)$1")) }

var (
	markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "!", `\!`,
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "(at)", "~", "&#126;")
	reference = regexp.MustCompile(`#(\d)`) // to an issue or a change
)

// visible shows hidden characters. Reviewers should see them: a right-to-left override
// becomes [U+202E].
func visible(s string) string {
	return Show(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n"), Hidden)
}

// Show replaces the characters that hidden selects by their code points.
func Show(s string, hidden func(rune) bool) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Hidden reports whether r is a control or format character, or a line separator that
// only some programs treat as one. The two joiners are allowed: scripts and emoji need
// them.
func Hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// dot matches the characters that browsers treat as a dot in a domain (UTS 46).
const dot = `[.。．｡]`

var (
	authority = regexp.MustCompile(`\[:\]//[^\s/\[]+`)
	// schemes are those that programs link without slashes.
	schemes = regexp.MustCompile(`(?i)\b(mailto|tel|sms|sips?|news|callto|skype|facetime|magnet|xmpp|file|data|javascript|vbscript|outlook|onenote|bitcoin|search-ms|ms-[a-z-]+):`)
	www     = regexp.MustCompile(`(?i)(www)(` + dot + `)`)
	address = regexp.MustCompile(`(\S)@(\p{L}|[\p{L}\p{N}_-]+` + dot + `\S)`)
	unc     = regexp.MustCompile(`(^|[^\\\w])(\\{2,})([\w-]{2,})`)
	dotted  = regexp.MustCompile(`[\p{L}\p{M}\p{N}_-]+(?:` + dot + `[\p{L}\p{M}\p{N}_-]+)+`)
	ipv4    = regexp.MustCompile(`\b\d{1,3}(` + dot + `\d{1,3}){3}\b`)
	dots    = strings.NewReplacer(".", "[.]", "。", "[。]", "．", "[．]", "｡", "[｡]")
)

// breakLinks works word by word: most words have none of the characters of a link.
func breakLinks(s string) string {
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end == 0 {
			_, end = utf8.DecodeRuneInString(s)
		} else if end < 0 {
			end = len(s)
		}
		word, colon := s[:end], ""
		s = s[end:]
		if s != "" && s[0] <= ' ' && strings.HasSuffix(word, ":") {
			word, colon = word[:len(word)-1], ":" // of prose, such as data: none
		}
		if strings.ContainsAny(word, `.。．｡:@\`) {
			word = breakWord(word)
		}
		out.WriteString(word + colon)
	}
	return out.String()
}

func breakWord(s string) string {
	s = schemes.ReplaceAllString(s, "$1[:]")
	s = authority.ReplaceAllStringFunc(strings.ReplaceAll(s, "://", "[:]//"), dots.Replace)
	s = www.ReplaceAllString(s, "$1[$2]")
	for range 2 { // the end of a match may begin the next one: a@b@c
		s = unc.ReplaceAllString(address.ReplaceAllString(s, "$1[at]$2"), "$1[$2]$3")
	}
	var out strings.Builder
	end := 0
	for _, at := range dotted.FindAllStringIndex(s, -1) {
		name := s[at[0]:at[1]]
		out.WriteString(s[end:at[0]])
		if end = at[1]; isDomain(name) && !isFile(s[:at[0]], name, s[end:]) {
			name = dots.Replace(name)
		}
		out.WriteString(name)
	}
	return out.String() + s[end:]
}

// reserved are top-level domains that are in no public list and in use.
var reserved = []string{"example", "test", "invalid", "localhost", "local", "internal", "intranet", "lan", "corp", "home", "onion", "arpa"}

// isDomain reports whether programs may link a word with dots: it ends in a top-level
// domain, or has an IP address. Names in code, such as c.mu.Unlock, mostly do not.
func isDomain(word string) bool {
	word = strings.TrimRight(word, "-_")
	last := strings.ToLower(strings.TrimLeft(word[strings.LastIndexAny(word, ".。．｡"):], ".。．｡"))
	_, public := publicsuffix.PublicSuffix("a." + last)
	foreign := strings.ContainsFunc(last, func(r rune) bool { return r > unicode.MaxASCII })
	return public || foreign || strings.HasPrefix(last, "xn--") || slices.Contains(reserved, last) || ipv4.MatchString(word)
}

// extensions of source files that are top-level domains too.
var extensions = []string{"ac", "ai", "am", "app", "as", "bat", "cc", "cl", "do", "in", "la", "md", "mk", "ml", "mm", "pl", "pm", "ps", "py", "rs", "sc", "sh", "so", "st", "tf", "vi"}

// isFile reports whether word, between before and after, is the last part of a path with
// the extension of a source file: no program links it there, and a depot path should stay
// one that can be pasted.
func isFile(before, word, after string) bool {
	folder, slash := strings.CutSuffix(before, "/")
	r, _ := utf8.DecodeLastRuneInString(folder)
	return slash && (unicode.IsLetter(r) || unicode.IsNumber(r)) && !strings.HasPrefix(after, "/") &&
		slices.Contains(extensions, strings.ToLower(word[strings.LastIndex(word, ".")+1:]))
}

// bounded cuts s to limit characters and appends how many are missing. It cuts before
// cleaning too, so that a megabyte is cheap.
func bounded(s string, limit int, clean func(string) string) string {
	head, tail := split(s, limit)
	head, rest := split(clean(head), limit)
	if n := utf8.RuneCountInString(tail) + utf8.RuneCountInString(rest); n > 0 {
		return head + fmt.Sprintf("… [%d more characters]", n)
	}
	return head
}

// split cuts s after n runes.
func split(s string, n int) (head, tail string) {
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}
