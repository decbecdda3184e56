package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/review/rules"
)

const rulesUsage = `usage: criticizer rules check [-json] PATH...
       criticizer rules list [-text] [-json]

  check   say which pack of rules counts for each depot path, and why
  list    print the packs in the order in which they are tried

The packs are those of llm.rules in the configuration and, after them, the
shipped ones. Both commands check all of them first; docs/rules.md has the format.

flags:
  -text   print what the packs say, too
  -json   print JSON

examples:
  criticizer rules check //depot/game/Source/Hero.cpp
  criticizer rules list -text

Exit status: 0 done, 1 a pack is wrong, 2 wrong usage.
`

// rulePacks implements criticizer rules.
func rulePacks(_ context.Context, args []string, c console) error {
	flags := c.flags("rules", rulesUsage)
	text := flags.Bool("text", false, "")
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	check, list := len(rest) > 1 && rest[0] == "check" && !*text, len(rest) == 1 && rest[0] == "list"
	if !check && !list {
		return badUsage("rules wants check and depot paths, or list: got %s", cmp.Or(strings.Join(args, " "), "neither"))
	}
	book, err := c.rules()
	if err != nil {
		return err
	}
	if check {
		return c.checkRules(book, rest[1:], *asJSON)
	}
	return c.listRules(book, *text, *asJSON)
}

func (c console) rules() (*rules.Book, error) {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err != nil {
		return nil, advise(err, "docs/configuration.md describes every field")
	}
	book, err := wiring.Rules(cfg)
	if err != nil {
		return nil, advise(err, "docs/rules.md has the format of rule files")
	}
	return book, nil
}

// A checkedPath says which pack counts for a path; Pack is empty if none does.
type checkedPath struct {
	Path    string `json:"path"`
	Pack    string `json:"pack,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

func (c console) checkRules(book *rules.Book, paths []string, asJSON bool) error {
	checked := make([]checkedPath, len(paths))
	for i, path := range paths {
		checked[i].Path = path
		if pack, pattern, ok := book.For(path); ok {
			checked[i] = checkedPath{path, pack.Name, pack.Origin, pattern}
		}
	}
	if asJSON {
		return c.printJSON(checked)
	}
	for _, p := range checked {
		if p.Pack == "" {
			fmt.Fprintf(c.stdout, "%s: no pack has a pattern for it\n", legible(p.Path))
		} else {
			fmt.Fprintf(c.stdout, "%s: pack %s (%s), by the pattern %s\n", legible(p.Path), p.Pack, p.Origin, p.Pattern)
		}
	}
	return nil
}

// A listedPack is a pack of rules; Text is what it says, if that was asked for.
type listedPack struct {
	Name     string   `json:"name"`
	Origin   string   `json:"origin"`
	Patterns []string `json:"patterns"`
	Text     string   `json:"text,omitempty"`
}

func (c console) listRules(book *rules.Book, text, asJSON bool) error {
	packs := []listedPack{}
	for _, p := range book.Packs() {
		listed := listedPack{Name: p.Name, Origin: p.Origin, Patterns: p.Patterns}
		if text {
			listed.Text = p.Text()
		}
		packs = append(packs, listed)
	}
	if asJSON {
		return c.printJSON(packs)
	}
	for _, p := range packs {
		fmt.Fprintf(c.stdout, "%s (%s): %s\n", p.Name, p.Origin, strings.Join(p.Patterns, " "))
		if p.Text != "" {
			fmt.Fprintf(c.stdout, "\n%s\n\n", indented(p.Text, "  "))
		}
	}
	return nil
}
