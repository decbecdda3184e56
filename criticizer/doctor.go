package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/operator"
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

With --model, only llm.model and each of llm.fallback_models are checked, with a
prompt of the configured size: does the server have the model, read the whole
prompt, and give an answer that can be used. That costs as much as one large call
to each.

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
		found := operator.RunChecks(cmd.Context(), timeout, c.checks(roles, *model))
		if err := c.print(found, func(w io.Writer) { operator.PrintResults(w, found) }); err != nil {
			return err
		}
		return operator.Failure(found)
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

// checks returns the checks of what the roles need, or of doctor --model.
func (c *app) checks(roles []settings.Role, model bool) []operator.Check {
	cfg, err := settings.Load(c.configPath, c.getenv)
	if err != nil {
		return []operator.Check{{Name: "config", Run: func(context.Context, *operator.Findings) error {
			return advise(err, "the other checks depend on it; for every setting: criticizer help configuration.md")
		}}}
	}
	i := installation{cfg, roles, settings.Program.File(c.configPath, c.getenv)}
	if cfg.CheckClearText(roles...) != nil { // no check may send what no worker would
		return []operator.Check{{Name: "config", Run: i.configuration}}
	}
	if model {
		return []operator.Check{{Name: "model", Run: i.checkUp}}
	}
	notifies := i.serves(settings.RoleNotify)
	sendsMail := notifies || i.serves(settings.RoleWorkflows) && cfg.OnCall.Address != ""
	mailNeeds := []string{"mail"}
	if notifies {
		mailNeeds = append(mailNeeds, "evidence")
	}
	var wanted []operator.Check
	for _, ch := range []struct {
		operator.Check
		when  bool
		needs []string // sections: the check of the configuration reports what they lack
	}{
		{operator.Check{Name: "config", Run: i.configuration}, true, nil},
		{operator.Check{Name: "secrets", Run: i.secrets}, true, nil},
		{operator.Check{Name: "oncall", Run: i.onCall}, i.serves(settings.RoleWorkflows), nil},
		{operator.Check{Name: "postgres", Run: i.postgres}, true, []string{"database"}},
		{operator.Check{Name: "temporal", Run: i.temporal}, true, []string{"temporal"}},
		{operator.Check{Name: "breakers", Run: i.breakers}, slices.ContainsFunc(i.roles, hasBreaker), []string{"database"}},
		{operator.Check{Name: "p4", Run: i.perforce}, i.serves(settings.RoleFetch), []string{"p4"}},
		{operator.Check{Name: "allowlist", Run: i.allowList}, i.serves(settings.RoleFetch), []string{"p4", "database"}},
		{operator.Check{Name: "model", Run: i.model}, i.serves(settings.RoleLLM), []string{"llm", "redaction"}},
		{operator.Check{Name: "mail", Run: i.mail}, sendsMail, mailNeeds},
		{operator.Check{Name: "journal", Run: i.journal}, sendsMail, mailNeeds},
		{operator.Check{Name: "bounces", Run: i.bounces}, sendsMail, mailNeeds},
	} {
		if ch.when && (ch.needs == nil || cfg.CheckSections(ch.needs...) == nil) {
			wanted = append(wanted, ch.Check)
		}
	}
	for _, c := range cfg.Channels(quiet, nil) {
		if notifies {
			wanted = append(wanted, operator.Check{Name: string(c.Name), Run: func(ctx context.Context, found *operator.Findings) error {
				if err := c.Ping(ctx); err != nil {
					return advise(err, "%s", c.Hint)
				}
				found.OK("%s", c.OK)
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

func (i installation) configuration(_ context.Context, found *operator.Findings) error {
	err := i.cfg.Check(i.roles...)
	if err == nil {
		found.OK("has everything that %s need", strings.Join(texts(i.roles), ", "))
		return nil
	}
	// The one mistake of which most problems are a result.
	if _, missing := os.Stat(i.file); missing != nil {
		found.Fail(advise(fmt.Errorf("no configuration was read: %s does not exist", i.file), "name the file with --config; to write one: criticizer help install.md"))
	}
	if len(i.cfg.Secrets(i.roles...)) == 0 {
		found.Fail(advise(errors.New("no secret is set: this shell does not have the environment of the workers"), "read it, such as with: set -a; . /etc/criticizer/worker-all.env; set +a"))
	}
	problems, _ := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	for _, err := range problems.Unwrap() {
		p, _ := errors.AsType[config.Problem](err)
		found.Fail(advise(fmt.Errorf("%s: %s", p.Field, p.What), "%s", p.Hint))
	}
	return nil
}
