package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/store/artifact"
)

func (c *console) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that workers need, and print how to fix it",
		Long: `Checks what the workers of this machine need: configuration, secrets and their
age, Postgres with its version, clock, roles and schema, Temporal with retention and
search attributes, p4 with ticket and permissions, the allow list, the model (a
call of a few tokens without any part of a change), mail with journal and bounces,
webhook and P4 Code Review (nothing is posted). All checks run, and each problem
comes with its fix. Nothing is changed, except that a missing p4.state_dir is
created.

With --model, only the model is checked, with prompts of the configured sizes: does
its server read a whole prompt, enforce the schema, keep the limit of an answer, and
refuse what it should refuse. That costs about as much as a large review.

Run it as the user of the workers and with their environment.

Exit status: 0 no check failed; 1 a check failed; 2 wrong usage.`,
		Example: `  criticizer doctor
  criticizer doctor --roles fetch,redact
  criticizer doctor --model`,
	}
	roles, timeout := stageRoles, 15*time.Second
	var list string
	flagOf(cmd, &list, "roles", "check what workers of these `ROLES` need, separated by commas: workflows, fetch, redact, llm, notify, retention, or all (default all)",
		func(text string) (_ string, err error) {
			roles, err = parseStages(text)
			return text, err
		})
	must(cmd.RegisterFlagCompletionFunc("roles", fixed(append(slices.Clone(stageRoles), "all")...)))
	flagOf(cmd, &timeout, "timeout", "limit each check to this `DURATION`", positive)
	model := cmd.Flags().Bool("model", false, "check the model's server with a prompt of the configured size, and nothing else")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *model && !cmd.Flags().Changed("timeout") {
			timeout = modelTimeout
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

// modelTimeout is enough for the calls of doctor --model to a server without a GPU.
const modelTimeout = 30 * time.Minute

// stageRoles are the stages of a review.
var stageRoles = []settings.Role{
	settings.RoleWorkflows, settings.RoleFetch, settings.RoleRedact, settings.RoleLLM, settings.RoleNotify, settings.RoleRetention,
}

func parseStages(list string) ([]settings.Role, error) {
	if list == "all" {
		return stageRoles, nil
	}
	var roles []settings.Role
	for name := range strings.SplitSeq(list, ",") {
		role := settings.Role(strings.TrimSpace(name))
		if _, ok := databaseRoles[role]; !ok {
			return nil, fmt.Errorf("%q is not a stage", name)
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

func ok(detail string, args ...any) checkResult {
	return checkResult{Status: statusOK, Detail: fmt.Sprintf(detail, args...)}
}

func warn(fix, detail string, args ...any) checkResult {
	return checkResult{Status: statusWarn, Detail: fmt.Sprintf(detail, args...), Fix: fix}
}

// fail returns a failure; if fix is empty, the fix is the hint of err.
func fail(err error, fix string) checkResult {
	return checkResult{Status: statusFail, Detail: err.Error(), Fix: cmp.Or(fix, hintOf(err))}
}

// failLogin is fail for a service with a credential; renew is the fix if the
// service refused the credential.
func failLogin(err error, renew string) checkResult {
	if failure.ClassOf(err) == failure.AuthDenied {
		return fail(err, renew)
	}
	return fail(err, "")
}

type check struct {
	name string
	run  func(context.Context) []checkResult
}

// runChecks runs all checks in parallel, each within the timeout, and returns
// their results in the order of the checks.
func runChecks(ctx context.Context, timeout time.Duration, all []check) []checkResult {
	found := make([][]checkResult, len(all))
	var running sync.WaitGroup
	for i, ch := range all {
		running.Go(func() { found[i] = ch.within(ctx, timeout) })
	}
	running.Wait()
	return slices.Concat(found...)
}

// within abandons a check that ignores the end of its context.
func (ch check) within(ctx context.Context, timeout time.Duration) []checkResult {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	done := make(chan []checkResult, 1)
	go func() { done <- ch.run(ctx) }()
	var found []checkResult
	select {
	case found = <-done:
	case <-time.After(timeout + time.Second):
		found = []checkResult{fail(fmt.Errorf("no answer within %s", timeout), "check that the service responds, or raise --timeout")}
	}
	for i := range found {
		found[i].Check = ch.name
	}
	return found
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

// maxSecretAge is the age at which a secret should be rotated: 90 days
// (security 9.3.5).
const maxSecretAge = 90 * 24 * time.Hour

// checks returns the checks of what the roles need, or of doctor --model.
func (c *console) checks(roles []settings.Role, model bool) []check {
	cfg, err := settings.Load(c.configPath, c.getenv)
	if err != nil {
		return []check{{"config", func(context.Context) []checkResult {
			return []checkResult{fail(err, "fix it first, the other checks depend on it: docs/configuration.md describes every field")}
		}}}
	}
	i := installation{cfg, roles}
	if cfg.CheckClearText(roles...) != nil { // no check may send what no worker would
		return []check{{"config", i.configuration}}
	}
	if model {
		return []check{{"model", i.checkUp}}
	}
	var wanted []check
	for _, ch := range []struct {
		check
		when bool
	}{
		{check{"config", i.configuration}, true},
		{check{"secrets", i.secrets}, true},
		{check{"oncall", i.onCall}, i.serves(settings.RoleWorkflows)},
		{check{"postgres", i.postgres}, true},
		{check{"temporal", i.temporal}, true},
		{check{"breakers", i.breakers}, i.hasBreakers()},
		{check{"p4", i.perforce}, i.serves(settings.RoleFetch)},
		{check{"allowlist", i.allowList}, i.serves(settings.RoleFetch)},
		{check{"model", i.model}, i.serves(settings.RoleLLM)},
		{check{"mail", i.mail}, i.sendsMail()},
		{check{"journal", i.journal}, i.sendsMail()},
		{check{"bounces", i.bounces}, i.sendsMail()},
		{check{"webhook", i.webhook}, i.serves(settings.RoleNotify) && cfg.Webhook.URL.IsSet()},
		{check{"swarm", i.swarm}, i.serves(settings.RoleNotify) && cfg.Swarm.URL != ""},
		{check{"spool", i.spool}, i.hasSpool()},
	} {
		if ch.when {
			wanted = append(wanted, ch.check)
		}
	}
	return wanted
}

// An installation is the subject of the checks: a configuration and the stages
// that the workers of this machine serve.
type installation struct {
	cfg   *settings.Config
	roles []settings.Role
}

func (i installation) serves(role settings.Role) bool { return slices.Contains(i.roles, role) }

func (i installation) sendsMail() bool {
	return i.serves(settings.RoleNotify) || i.serves(settings.RoleWorkflows) && i.cfg.OnCall.Address != ""
}

func (i installation) configuration(context.Context) []checkResult {
	err := i.cfg.Check(i.roles...)
	if err == nil {
		return []checkResult{ok("has everything that %s need", strings.Join(texts(i.roles), ", "))}
	}
	var found []checkResult
	_, problems, _ := strings.Cut(err.Error(), "\n")
	for problem := range strings.Lines(problems) {
		problem = strings.TrimSpace(problem)
		what, fix := problem, ""
		if at := strings.LastIndex(problem, ": "); at >= 0 {
			what, fix = problem[:at], problem[at+2:]
		}
		found = append(found, fail(errors.New(what), fix))
	}
	return found
}

// onCall checks that a dead letter that needs a person can page one. If oncall.required
// is set, the check of the configuration fails otherwise.
func (i installation) onCall(context.Context) []checkResult {
	if !i.cfg.OnCall.Pages() {
		return []checkResult{warn("set oncall.address or CRITICIZER_ONCALL_WEBHOOK_URL, and oncall.required in production", "no pages are sent about dead letters")}
	}
	return []checkResult{ok("pages are sent")}
}

// secrets checks that keysets can be opened, and the age of the secrets that are in
// files; the age of an environment variable is unknown.
func (i installation) secrets(context.Context) []checkResult {
	var found []checkResult
	for _, s := range i.cfg.Secrets(i.roles...) {
		if strings.HasSuffix(s.Variable, "_KEYSET") {
			if err := artifact.CheckKeyset(s.Value, i.cfg.Artifacts.KEK); err != nil {
				found = append(found, fail(fmt.Errorf("%s: %w", s.Variable, err), "restore the keyset, or make it readable with artifacts.kek_uri; criticizer keyset create makes a first one"))
				continue
			}
		}
		path, written := s.File()
		switch old := time.Since(written); {
		case path == "":
			found = append(found, ok("%s is set in the environment; its age is unknown", s.Variable))
		case old > maxSecretAge:
			found = append(found, warn("rotate it; docs/security.md describes how without an interruption", "%s is %d days old, more than 90", s.Variable, int(old.Hours()/24)))
		default:
			found = append(found, ok("%s is %s old, in %s", s.Variable, age(old), path))
		}
	}
	return found
}

// hasSpool is true for the account of the triggers on their host.
func (i installation) hasSpool() bool {
	_, err := os.ReadDir(i.cfg.Starter.SpoolDir)
	return err == nil
}

func (i installation) spool(context.Context) []checkResult {
	waiting, errWaiting := filepath.Glob(filepath.Join(i.cfg.Starter.SpoolDir, "*.json"))
	refused, errRefused := filepath.Glob(filepath.Join(i.cfg.Starter.SpoolDir, "*.json.refused"))
	switch err := errors.Join(errWaiting, errRefused); {
	case err != nil:
		return []checkResult{fail(fmt.Errorf("list starter.spool_dir: %w", err), "")}
	case len(refused) > 0:
		return []checkResult{warn("docs/trigger.md has the steps", "%d requests were set aside: no review of them was started", len(refused))}
	}
	return []checkResult{ok("holds %d requests for the next drain", len(waiting))}
}
