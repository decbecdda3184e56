package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/review/rules"
)

func (c *app) rulesCommand() *cobra.Command {
	// A match is a pack that applies to a path; Pack is empty if none does.
	type match struct {
		Path    string `json:"path"`
		Pack    string `json:"pack,omitempty"`
		Origin  string `json:"origin,omitempty"`
		Pattern string `json:"pattern,omitempty"`
	}
	matches := table[match]{header: []string{"PACK", "PATTERN", "FROM", "PATH"}, cells: func(m match) []any {
		return []any{cmp.Or(m.Pack, "none"), m.Pattern, m.Origin, m.Path}
	}}
	check := &cobra.Command{
		Use: "check PATH...", Short: "Show which packs apply to each depot path, and why",
		Example: "  criticizer rules check //depot/game/Source/Hero.cpp",
		RunE: func(cmd *cobra.Command, paths []string) error {
			set, err := c.rules(cmd.Context())
			if err != nil {
				return err
			}
			var checked []match
			for _, path := range paths {
				found := set.For(path)
				for _, m := range found {
					checked = append(checked, match{path, m.Name, m.Origin, m.Pattern})
				}
				if len(found) == 0 {
					checked = append(checked, match{Path: path})
				}
			}
			return printList(c, checked, matches)
		},
	}
	type pack struct {
		Name     string   `json:"name"`
		Origin   string   `json:"origin"`
		Patterns []string `json:"patterns"`
		Text     string   `json:"text"`
	}
	packs := table[pack]{header: []string{"PACK", "FROM", "PATTERNS"}, cells: func(p pack) []any {
		return []any{p.Name, p.Origin, strings.Join(p.Patterns, " ")}
	}}
	list := &cobra.Command{
		Use: "list", Short: "List the packs in the order in which they are tried",
		Long:    "Lists the packs in the order in which they are tried. The JSON has their text.",
		Example: "  criticizer rules list --json | jq -r '.[] | select(.name == \"go\").text'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := c.rules(cmd.Context())
			if err != nil {
				return err
			}
			var listed []pack
			for _, p := range set.Packs() {
				listed = append(listed, pack{p.Name, p.Origin, p.Patterns, p.Text()})
			}
			return printList(c, listed, packs)
		},
	}
	return group("rules", "Show which rule pack applies to a path, or list the packs",
		`The packs come from rules.depot and llm.rules of the configuration, and from
this build. Both commands check all of them first
(criticizer help rules.md).`, check, list)
}

func (c *app) rules(ctx context.Context) (*rules.Set, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	set, err := cfg.NewRules()
	if err != nil {
		return nil, advise(err, "for the format of rule files: criticizer help rules.md")
	}
	if len(cfg.Rules.Depot) == 0 {
		return set, nil
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
		if set, err = set.WithTeam(fmt.Sprintf("%s#%d", f.Path, f.Revision), f.Text); err != nil {
			return nil, advise(err, "reviews leave this file out; for the format: criticizer help rules.md")
		}
	}
	return set, nil
}
