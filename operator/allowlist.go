package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/store"
)

const allowlistUsage = `usage: criticizer allowlist check [-file FILE] [-case RULE] [-json] [--] PATH...
       criticizer allowlist show [-json]
       criticizer allowlist apply -reason TEXT [FILE]
       criticizer allowlist history [-json]

  check    say of each depot path whether it may be read, and if not, why. A path
           is written as p4 prints it: %40 for @, %23 for #, %25 for %, %2A for *
  show     print the list of the configuration, and whether it is in force
  apply    put the list in force: a worker refuses one that nobody applied. Who,
           when, why and what changed is kept in the audit log
  history  print every version there was, and what it changed

The list is that of the configuration, p4.allowed_paths and p4.embargoed_paths,
or that of FILE: a configuration, these two fields, or one path per line.

flags:
  -file FILE    check against the list of FILE
  -case RULE    how the server takes letters: sensitive, insensitive, or unknown,
                which allows only what is allowed either way (default unknown;
                p4 info tells)
  -reason TEXT  why the list is put in force, such as a ticket
  -json         print JSON

examples:
  criticizer allowlist check -- //depot/project/file.c
  criticizer allowlist show
  criticizer allowlist apply -reason "TICKET-42: project joins"
  criticizer allowlist history -json

Exit status: 0 done, 1 failed or, of check, not all paths may be read, 2 wrong
usage.
`

var allowlistCommands = map[string]command{
	"check": checkPaths, "show": showAllowList, "apply": applyAllowList, "history": allowListHistory,
}

// allowlist implements criticizer allowlist (security 9.1.5).
func allowlist(ctx context.Context, args []string, c console) error {
	flags := c.flags("allowlist", allowlistUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	run, ok := allowlistCommands[flags.Arg(0)]
	if !ok {
		return notOne("allowlist", flags.Arg(0), "check", "show", "apply", "history")
	}
	return run(ctx, flags.Args()[1:], c)
}

// caseRules are the ways in which a path is compared, by the words of -case.
var caseRules = map[string][]bool{"sensitive": {false}, "insensitive": {true}, "unknown": {false, true}}

// checkPaths implements criticizer allowlist check.
func checkPaths(_ context.Context, args []string, c console) error {
	flags := c.flags("check", allowlistUsage)
	file := flags.String("file", "", "")
	rule := flags.String("case", "unknown", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	folds, ok := caseRules[*rule]
	switch {
	case !ok:
		return badUsage("-case %q: want sensitive, insensitive or unknown", *rule)
	case flags.NArg() == 0:
		return badUsage("check wants the paths to check")
	}
	_, list, err := c.allowList(*file)
	if err != nil {
		return err
	}
	judged, denied := judge(list, flags.Args(), folds)
	if err := c.printJudged(judged, *asJSON); err != nil {
		return err
	}
	if denied > 0 {
		return advise(fmt.Errorf("%d of %d paths may not be read", denied, flags.NArg()), "to widen the list, change p4.allowed_paths and run criticizer allowlist apply")
	}
	return nil
}

// A judgedPath says whether a path may be read, and if not, why.
type judgedPath struct {
	Path    string `json:"path"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
}

func judge(list p4.AllowList, paths []string, folds []bool) (judged []judgedPath, denied int) {
	for _, path := range paths {
		p := judgedPath{Path: path, Allowed: true}
		if err := mayBeRead(list, path, folds); err != nil {
			p.Allowed, p.Why = false, err.Error()
			denied++
		}
		judged = append(judged, p)
	}
	return judged, denied
}

func (c console) printJudged(judged []judgedPath, asJSON bool) error {
	if asJSON {
		return c.printJSON(judged)
	}
	for _, p := range judged {
		if p.Allowed {
			fmt.Fprintf(c.stdout, "allowed  %s\n", legible(p.Path))
		} else {
			fmt.Fprintf(c.stdout, "denied   %s: %s\n", legible(p.Path), p.Why)
		}
	}
	return nil
}

func mayBeRead(list p4.AllowList, path string, folds []bool) error {
	for _, fold := range folds {
		if err := list.Check(path, fold); err != nil {
			return err
		}
	}
	return nil
}

// legible quotes a path that would not show on a terminal as it is.
func legible(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// allowList reads and checks the list of file or, if that is empty, of the
// configuration.
func (c console) allowList(file string) (store.AllowList, p4.AllowList, error) {
	list, err := c.paths(file)
	if err != nil {
		return list, p4.AllowList{}, failure.New(failure.ConfigInvalid, err)
	}
	checked, err := checkedList(list)
	return list, checked, err
}

// checkedList refuses a list with an entry that no worker would start on.
func checkedList(list store.AllowList) (p4.AllowList, error) {
	checked, err := p4.NewAllowList(list.Allowed, list.Embargoed)
	if err != nil {
		return checked, advise(failure.New(failure.ConfigInvalid, err), "write entries such as //depot/project/...; docs/security.md has the rules")
	}
	return checked, nil
}

// configured is the list of the configuration.
func configured(cfg *config.Config) store.AllowList {
	return store.AllowList{Allowed: cfg.P4.AllowedPaths, Embargoed: cfg.P4.EmbargoedPaths}
}

func (c console) paths(file string) (store.AllowList, error) {
	if file != "" {
		allowed, embargoed, err := config.LoadPaths(file)
		if err != nil {
			err = advise(err, "criticizer allowlist -h says what such a file holds")
		}
		return store.AllowList{Allowed: allowed, Embargoed: embargoed}, err
	}
	cfg, err := config.Load(c.configPath, c.getenv)
	if err != nil {
		return store.AllowList{}, advise(err, "docs/configuration.md describes every field")
	}
	return configured(cfg), nil
}

// showAllowList implements criticizer allowlist show.
func showAllowList(ctx context.Context, args []string, c console) error {
	asJSON, err := c.onlyJSON("show", allowlistUsage, args)
	if err != nil {
		return err
	}
	list, _, err := c.allowList("")
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	applied, err := db.AppliedAllowList(ctx)
	if err != nil && failure.ClassOf(err) != failure.NotFound {
		return err
	}
	changes := list.Changes(applied.AllowList)
	if asJSON {
		return c.printJSON(map[string]any{"configured": list, "in_force": applied, "not_applied": changes})
	}
	for _, line := range list.Changes(store.AllowList{}) {
		fmt.Fprintln(c.stdout, strings.TrimPrefix(line, "+"))
	}
	if len(changes) == 0 {
		fmt.Fprintf(c.stdout, "in force: version %d, applied %s %s\n", applied.ID, stamp(applied.AppliedAt), byWhom(applied.Who, applied.Reason))
		return nil
	}
	fmt.Fprintf(c.stdout, "NOT in force: it differs from version %d; criticizer allowlist apply changes that:\n  %s\n", applied.ID, strings.Join(changes, "\n  "))
	return nil
}

// applyAllowList implements criticizer allowlist apply.
func applyAllowList(ctx context.Context, args []string, c console) error {
	flags := c.flags("apply", allowlistUsage)
	reason := flags.String("reason", "", "")
	files, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(files) > 1 {
		return badUsage("apply takes one file: got %q", files)
	}
	why, err := statement("reason", *reason)
	if err != nil {
		return err
	}
	list, _, err := c.allowList(strings.Join(files, ""))
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	version, changes, err := db.ApplyAllowList(ctx, list, c.operator(), why)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(c.stdout, "nothing to do: the list is version %d, in force since %s\n", version.ID, stamp(version.AppliedAt))
		return nil
	}
	fmt.Fprintf(c.stdout, "version %d is in force:\n  %s\n", version.ID, strings.Join(changes, "\n  "))
	return nil
}

// allowListHistory implements criticizer allowlist history.
func allowListHistory(ctx context.Context, args []string, c console) error {
	asJSON, err := c.onlyJSON("history", allowlistUsage, args)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	versions, err := db.AllowListVersions(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return c.printJSON(versions)
	}
	if len(versions) == 0 {
		fmt.Fprintln(c.stdout, "no allow-list was ever applied")
	}
	var before store.AllowList
	for _, v := range versions {
		fmt.Fprintf(c.stdout, "version %d, %s, %s (login %s)\n", v.ID, stamp(v.AppliedAt), byWhom(v.Who, v.Reason), v.Login)
		for _, line := range v.Changes(before) {
			fmt.Fprintln(c.stdout, "  "+line)
		}
		before = v.AllowList
	}
	return nil
}

// onlyJSON parses the arguments of a command whose one flag is -json.
func (c console) onlyJSON(name, usage string, args []string) (asJSON bool, err error) {
	flags := c.flags(name, usage)
	flags.BoolVar(&asJSON, "json", false, "")
	if err := flags.parse(args); err != nil {
		return false, err
	}
	if flags.NArg() > 0 {
		return false, badUsage("%s takes flags only: got %q", name, flags.Arg(0))
	}
	return asJSON, nil
}
