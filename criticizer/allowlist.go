package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/store"
)

func (c *app) allowlistCommand() *cobra.Command {
	return group("allowlist", "Check, show or apply the allow list of depot paths",
		`The allow list is p4.allowed_paths and p4.embargoed_paths of the configuration. A
worker rejects a list that was not applied.`,
		c.allowlistCheckCommand(), c.allowlistShowCommand(), c.allowlistApplyCommand(), c.allowlistHistoryCommand())
}

func (c *app) allowlistCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Check whether depot paths may be read",
		Long: `Checks for each depot path whether it may be read, and if not, why. A path is
written as p4 prints it: %40 for @, %23 for #, %25 for %, %2A for *. The exit
status is 1 unless all paths may be read.`,
		Example: "  criticizer allowlist check -- //depot/project/file.c",
	}
	rule := "unknown"
	wordFlag(cmd, &rule, "case", "`RULE` by which the server compares letters: sensitive, insensitive, hybrid or unknown",
		"sensitive", "insensitive", "hybrid", "unknown")
	type checkedPath struct {
		Path    string `json:"path"`
		Allowed bool   `json:"allowed"`
		Why     string `json:"why,omitempty"`
	}
	results := table[checkedPath]{header: []string{"ALLOWED", "PATH", "WHY NOT"}, cells: func(v checkedPath) []any { return []any{v.Allowed, v.Path, v.Why} }}
	cmd.RunE = func(_ *cobra.Command, paths []string) error {
		_, list, err := c.allowList()
		if err != nil {
			return err
		}
		var checked []checkedPath
		denied := 0
		for _, path := range paths {
			v := checkedPath{Path: path, Allowed: true}
			if err := list.Check(path, rule); err != nil {
				v.Allowed, v.Why = false, err.Error()
				denied++
			}
			checked = append(checked, v)
		}
		if err := printList(c, checked, results); err != nil || denied == 0 {
			return err
		}
		return advise(fmt.Errorf("%d of %d paths may not be read", denied, len(paths)), "to widen the list, change p4.allowed_paths, then: "+applyCommand)
	}
	return cmd
}

// allowList reads the list of the configuration, and rejects one with an entry that no
// worker would start with.
func (c *app) allowList() (list store.AllowList, checked p4.AllowList, err error) {
	cfg, err := c.config()
	if err != nil {
		return list, checked, err
	}
	list = cfg.AllowList()
	checked, err = checkedList(list)
	return list, checked, err
}

// checkedList rejects a list with an entry that no worker would start with.
func checkedList(list store.AllowList) (p4.AllowList, error) {
	checked, err := p4.NewAllowList(list.Allowed, list.Embargoed)
	if err != nil {
		return checked, advise(failure.New(failure.ConfigInvalid, err), "write entries such as //depot/project/...; for the rules: criticizer help security.md")
	}
	return checked, nil
}

func (c *app) allowlistShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the configured list and whether it is in force",
		RunE: c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
			list, _, err := c.allowList()
			if err != nil {
				return err
			}
			applied, err := db.AppliedAllowList(ctx)
			if err != nil && failure.ClassOf(err) != failure.NotFound {
				return err
			}
			changes := list.Changes(applied.AllowList)
			return c.print(map[string]any{"configured": list, "in_force": applied, "not_applied": changes}, func(w io.Writer) {
				for _, line := range list.Changes(store.AllowList{}) {
					fmt.Fprintln(w, strings.TrimPrefix(line, "+"))
				}
				switch {
				case applied.ID == 0:
					fmt.Fprintf(w, "NOT in force, as no list was applied")
				case len(changes) > 0:
					fmt.Fprintf(w, "NOT in force: it differs from version %d by\n  %s", applied.ID, strings.Join(changes, "\n  "))
				default:
					fmt.Fprintf(w, "in force: version %d, applied %s %s\n", applied.ID, operator.Stamp(applied.AppliedAt), byWhom(applied.Who, applied.Reason))
					return
				}
				fmt.Fprintf(w, "\nto apply it: %s\n", applyCommand)
			})
		}),
	}
}

// applyCommand puts the configured list in force.
const applyCommand = `criticizer allowlist apply --reason "WHY"`

func (c *app) allowlistApplyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply", Short: "Put the list in force",
		Long: `Puts the list of the configuration in force. The audit log keeps who applied it,
when, why, and what changed.`,
		Example: `  criticizer allowlist apply --reason "TICKET-42: project joins"`,
	}
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
		list, _, err := c.allowList()
		if err != nil {
			return err
		}
		version, changes, err := db.ApplyAllowList(ctx, list, operator.Name(c.getenv), *reason)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			return c.done("nothing to do: the list is version %d, in force since %s", version.ID, operator.Stamp(version.AppliedAt))
		}
		return c.done("version %d is in force:\n  %s", version.ID, strings.Join(changes, "\n  "))
	})
	return cmd
}

func (c *app) allowlistHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "history", Short: "Print all versions of the list and their changes",
		RunE: c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
			versions, err := db.AllowListVersions(ctx)
			if err != nil {
				return err
			}
			return c.print(versions, func(w io.Writer) {
				if len(versions) == 0 {
					fmt.Fprintln(w, "no allow list was applied")
				}
				var before store.AllowList
				for _, v := range versions {
					fmt.Fprintf(w, "version %d, %s, %s (login %s)\n", v.ID, operator.Stamp(v.AppliedAt), byWhom(v.Who, v.Reason), v.Login)
					for _, line := range v.Changes(before) {
						fmt.Fprintln(w, "  "+line)
					}
					before = v.AllowList
				}
			})
		}),
	}
}
