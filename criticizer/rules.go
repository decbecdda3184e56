package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/review/rules"
)

func (c *console) rulesCommand() *cobra.Command {
	return group("rules", "Show which rule pack applies to a path, or list the packs",
		`The packs come from files of teams in the depot (rules.depot of the
configuration, at the newest revision), from llm.rules, and from this build. Both
commands check all of them first; docs/rules.md describes the format.`,
		c.rulesCheckCommand(), c.rulesListCommand())
}

func (c *console) rules(ctx context.Context) (*rules.Set, error) {
	cfg, err := c.config("")
	if err != nil {
		return nil, err
	}
	book, err := cfg.NewRules()
	if err != nil {
		return nil, advise(err, "docs/rules.md describes the format of rule files")
	}
	if len(cfg.Rules.Depot) == 0 {
		return book, nil
	}
	fetcher, err := cfg.NewChanges(quiet, nil)
	if err != nil {
		return nil, err
	}
	files, err := fetcher.Rules(ctx)
	if err != nil {
		return nil, fmt.Errorf("read rules.depot: %w", err)
	}
	for _, f := range files {
		if f.Revision == 0 {
			return nil, fmt.Errorf("read rules.depot: %s does not exist", f.Path)
		}
		if book, err = book.WithTeam(fmt.Sprintf("%s#%d", f.Path, f.Revision), f.Text); err != nil {
			return nil, advise(err, "docs/rules.md describes the format of rule files; reviews leave this file out")
		}
	}
	return book, nil
}

// A checkedPath is a pack that applies to a path; Pack is empty if none does.
type checkedPath struct {
	Path    string `json:"path"`
	Pack    string `json:"pack,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

func (c *console) rulesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check PATH...", Short: "Show which packs apply to each depot path, and why",
		Example: "  criticizer rules check //depot/game/Source/Hero.cpp",
		RunE: func(cmd *cobra.Command, paths []string) error {
			book, err := c.rules(cmd.Context())
			if err != nil {
				return err
			}
			checked := []checkedPath{}
			for _, path := range paths {
				found := book.For(path)
				for _, m := range found {
					checked = append(checked, checkedPath{path, m.Name, m.Origin, m.Pattern})
				}
				if len(found) == 0 {
					checked = append(checked, checkedPath{Path: path})
				}
			}
			return c.print(checked, func(w io.Writer) {
				for _, p := range checked {
					if p.Pack == "" {
						fmt.Fprintf(w, "%s: no pack has a pattern for it\n", legible(p.Path))
					} else {
						fmt.Fprintf(w, "%s: pack %s (%s), pattern %s\n", legible(p.Path), p.Pack, p.Origin, p.Pattern)
					}
				}
			})
		},
	}
}

// A listedPack is a rule pack; Text is empty unless --text asks for it.
type listedPack struct {
	Name     string   `json:"name"`
	Origin   string   `json:"origin"`
	Patterns []string `json:"patterns"`
	Text     string   `json:"text,omitempty"`
}

func (c *console) rulesListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the packs in the order in which they are tried",
		Example: "  criticizer rules list --text",
	}
	text := cmd.Flags().Bool("text", false, "print the text of the packs, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		book, err := c.rules(cmd.Context())
		if err != nil {
			return err
		}
		packs := []listedPack{}
		for _, p := range book.Packs() {
			listed := listedPack{Name: p.Name, Origin: p.Origin, Patterns: p.Patterns}
			if *text {
				listed.Text = p.Text()
			}
			packs = append(packs, listed)
		}
		return c.print(packs, func(w io.Writer) {
			for _, p := range packs {
				fmt.Fprintf(w, "%s (%s): %s\n", p.Name, p.Origin, strings.Join(p.Patterns, " "))
				if p.Text != "" {
					fmt.Fprintf(w, "\n%s\n\n", indented(p.Text, "  "))
				}
			}
		})
	}
	return cmd
}
