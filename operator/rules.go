package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/assembly"
	"github.com/criticizer/criticizer/config"
	"github.com/criticizer/criticizer/rules"
)

const rulesUsage = `usage: criticizer rules check PATH...
       criticizer rules list [-text]

  check   say which pack of rules counts for each depot path, and why
  list    print the packs in the order in which they are tried

The packs are those of llm.rules in the configuration and, after them, the
shipped ones. Both commands check all of them first; docs/rules.md has the format.

flags:
  -text   print what the packs say, too

Exit status: 0 done, 1 a pack is wrong, 2 wrong usage.
`

// rulePacks implements criticizer rules.
func rulePacks(_ context.Context, args []string, c console) error {
	flags := c.flags("rules", rulesUsage)
	text := flags.Bool("text", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	book, err := c.rules()
	if err != nil {
		return err
	}
	switch {
	case len(rest) > 1 && rest[0] == "check" && !*text:
		c.checkRules(book, rest[1:])
	case len(rest) == 1 && rest[0] == "list":
		c.listRules(book, *text)
	default:
		return badUsage("rules wants check and depot paths, or list: got %q", strings.Join(args, " "))
	}
	return nil
}

func (c console) rules() (*rules.Book, error) {
	cfg, err := config.Load(c.configPath, c.getenv)
	if err != nil {
		return nil, advise(err, "docs/configuration.md describes every field")
	}
	book, err := assembly.Rules(cfg)
	if err != nil {
		return nil, advise(err, "docs/rules.md has the format of rule files")
	}
	return book, nil
}

func (c console) checkRules(book *rules.Book, paths []string) {
	for _, path := range paths {
		if pack, pattern, ok := book.For(path); ok {
			fmt.Fprintf(c.stdout, "%s: pack %s (%s), by the pattern %s\n", legible(path), pack.Name, pack.Origin, pattern)
		} else {
			fmt.Fprintf(c.stdout, "%s: no pack has a pattern for it\n", legible(path))
		}
	}
}

func (c console) listRules(book *rules.Book, text bool) {
	for _, pack := range book.Packs() {
		fmt.Fprintf(c.stdout, "%s (%s): %s\n", pack.Name, pack.Origin, strings.Join(pack.Patterns, " "))
		if text {
			fmt.Fprintf(c.stdout, "\n%s\n\n", indented(pack.Text(), "  "))
		}
	}
}
