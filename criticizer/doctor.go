package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/settings"
)

func (c *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that workers need, and print how to fix it",
		Long: `Checks everything that the workers of this machine need, from the configuration
to the model (a call of a few tokens without any part of a change) and the channels
(nothing is posted), and prints each problem with its fix. Only a missing
p4.state_dir is created. Run it as the user of the workers and with their
environment.

With --model, only the model is checked, with prompts of the configured sizes: does
its server read a whole prompt, enforce the schema, keep the limit of an answer, and
refuse what it should refuse. That costs about as much as a large review.

Exit status: 0 no check failed; 1 a check failed; 2 wrong usage.`,
		Example: "  criticizer doctor --roles fetch,redact",
	}
	roles, timeout := settings.WorkerRoles, 15*time.Second
	var list string
	flagOf(cmd, &list, "roles", "check what workers of these `ROLES` need: workflows, fetch, redact, llm, notify, retention, or all, separated by commas (default all)",
		func(text string) (_ string, err error) {
			roles, err = parseRoles(text)
			return text, err
		})
	must(cmd.RegisterFlagCompletionFunc("roles", fixed(append(slices.Clone(settings.WorkerRoles), "all")...)))
	flagOf(cmd, &timeout, "timeout", "limit each check to this `DURATION`", positive)
	model := cmd.Flags().Bool("model", false, "check the model's server only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *model && !cmd.Flags().Changed("timeout") {
			timeout = 30 * time.Minute // for a server without a GPU
		}
		found := runChecks(cmd.Context(), timeout, c.checks(roles, *model))
		err := c.print(found, func(w io.Writer) { printResults(w, found) })
		if err == nil && slices.ContainsFunc(found, func(r checkResult) bool { return r.Status == statusFail }) {
			err = errReported
		}
		return err
	}
	return cmd
}

func parseRoles(list string) ([]settings.Role, error) {
	if list == "all" {
		return settings.WorkerRoles, nil
	}
	var roles []settings.Role
	for name := range strings.SplitSeq(list, ",") {
		role := settings.Role(strings.TrimSpace(name))
		if !slices.Contains(settings.WorkerRoles, role) {
			return nil, fmt.Errorf("%q is not a role", name)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

type checkStatus string

const (
	statusOK   checkStatus = "ok"
	statusWarn checkStatus = "warn" // works, but not for long or not as it should
	statusFail checkStatus = "fail"
)

type checkResult struct {
	Check  string      `json:"check"`
	Status checkStatus `json:"status"`
	Detail string      `json:"detail"`
	Fix    string      `json:"fix,omitempty"`
}

// A check is one of the checks of doctor. run reports what it finds; an error that it
// returns is reported as a failure, with the hint of the error as the fix.
type check struct {
	name string
	run  func(context.Context, *findings) error
}

// findings are the results of one check.
type findings []checkResult

func (f *findings) ok(detail string, args ...any) {
	*f = append(*f, checkResult{Status: statusOK, Detail: fmt.Sprintf(detail, args...)})
}

func (f *findings) warn(fix, detail string, args ...any) {
	*f = append(*f, checkResult{Status: statusWarn, Detail: fmt.Sprintf(detail, args...), Fix: fix})
}

func (f *findings) fail(err error) {
	*f = append(*f, checkResult{Status: statusFail, Detail: err.Error(), Fix: hintOf(err)})
}

// runChecks runs all checks in parallel, each within the timeout, and returns their results in
// the order of the checks. It abandons a check that ignores the end of its context.
func runChecks(ctx context.Context, timeout time.Duration, all []check) []checkResult {
	results := make([]findings, len(all))
	var running sync.WaitGroup
	for i, ch := range all {
		running.Go(func() {
			ctx, stop := context.WithTimeout(ctx, timeout)
			defer stop()
			done := make(chan findings, 1)
			go func() {
				var found findings
				if err := ch.run(ctx, &found); err != nil {
					found.fail(err)
				}
				done <- found
			}()
			select {
			case results[i] = <-done:
			case <-time.After(timeout + time.Second):
				results[i].fail(advise(fmt.Errorf("no answer within %s", timeout), "check that the service responds, or raise --timeout"))
			}
			for n := range results[i] {
				results[i][n].Check = ch.name
			}
		})
	}
	running.Wait()
	return slices.Concat(results...)
}

func printResults(w io.Writer, found []checkResult) {
	const indent = "                 "
	hanging := func(text string) string { return strings.TrimPrefix(indented(text, indent), indent) }
	for _, r := range found {
		fmt.Fprintf(w, "%-5s %-10s %s\n", r.Status, r.Check, hanging(r.Detail))
		if r.Fix != "" {
			fmt.Fprintf(w, "%sfix: %s\n", indent, hanging(r.Fix))
		}
	}
}

// checks returns the checks of what the roles need, or of doctor --model.
func (c *app) checks(roles []settings.Role, model bool) []check {
	cfg, err := settings.Load(c.configPath, c.getenv)
	if err != nil {
		return []check{{"config", func(context.Context, *findings) error {
			return advise(err, "the other checks depend on it; for every setting: criticizer help configuration.md")
		}}}
	}
	i := installation{cfg, roles, settings.Program.File(c.configPath, c.getenv)}
	if cfg.CheckClearText(roles...) != nil { // no check may send what no worker would
		return []check{{"config", i.configuration}}
	}
	if model {
		return []check{{"model", i.checkUp}}
	}
	notifies := i.serves(settings.RoleNotify)
	sendsMail := notifies || i.serves(settings.RoleWorkflows) && cfg.OnCall.Address != ""
	mailNeeds := []string{"mail"}
	if notifies {
		mailNeeds = append(mailNeeds, "evidence")
	}
	var wanted []check
	for _, ch := range []struct {
		check
		when  bool
		needs []string // sections: the check of the configuration reports what they lack
	}{
		{check{"config", i.configuration}, true, nil},
		{check{"secrets", i.secrets}, true, nil},
		{check{"oncall", i.onCall}, i.serves(settings.RoleWorkflows), nil},
		{check{"postgres", i.postgres}, true, []string{"database"}},
		{check{"temporal", i.temporal}, true, []string{"temporal"}},
		{check{"breakers", i.breakers}, slices.ContainsFunc(i.roles, hasBreaker), []string{"database"}},
		{check{"p4", i.perforce}, i.serves(settings.RoleFetch), []string{"p4"}},
		{check{"allowlist", i.allowList}, i.serves(settings.RoleFetch), []string{"p4", "database"}},
		{check{"model", i.model}, i.serves(settings.RoleLLM), []string{"llm", "redaction"}},
		{check{"mail", i.mail}, sendsMail, mailNeeds},
		{check{"journal", i.journal}, sendsMail, mailNeeds},
		{check{"bounces", i.bounces}, sendsMail, mailNeeds},
	} {
		if ch.when && (ch.needs == nil || cfg.CheckSections(ch.needs...) == nil) {
			wanted = append(wanted, ch.check)
		}
	}
	for _, c := range cfg.Channels(quiet, nil) {
		if notifies {
			wanted = append(wanted, check{string(c.Name), func(ctx context.Context, found *findings) error {
				if err := c.Ping(ctx); err != nil {
					return advise(err, "%s", c.Hint)
				}
				found.ok("%s", c.OK)
				return nil
			}})
		}
	}
	return wanted
}

// An installation is the subject of the checks: a configuration and the roles of the workers
// of this machine.
type installation struct {
	cfg   *settings.Config
	roles []settings.Role
	file  string // of the configuration
}

func (i installation) serves(role settings.Role) bool { return slices.Contains(i.roles, role) }

func (i installation) configuration(_ context.Context, found *findings) error {
	err := i.cfg.Check(i.roles...)
	if err == nil {
		found.ok("has everything that %s need", strings.Join(texts(i.roles), ", "))
		return nil
	}
	// The one mistake of which most problems are a result.
	if _, missing := os.Stat(i.file); missing != nil {
		found.fail(advise(fmt.Errorf("no configuration was read: %s does not exist", i.file), "name the file with --config; to write one: criticizer help install.md"))
	}
	if len(i.cfg.Secrets(i.roles...)) == 0 {
		found.fail(advise(errors.New("no secret is set: this shell does not have the environment of the workers"), "read it, such as with: set -a; . /etc/criticizer/worker-all.env; set +a"))
	}
	problems, _ := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	for _, err := range problems.Unwrap() {
		p, _ := errors.AsType[config.Problem](err)
		found.fail(advise(fmt.Errorf("%s: %s", p.Field, p.What), "%s", p.Hint))
	}
	return nil
}
