package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

const doctorUsage = `usage: criticizer doctor [-stages LIST] [-timeout TIME] [-json]

Checks what the workers of this machine need: configuration, secrets and their
age, Postgres with its version, roles and schema, Temporal with retention and
search attributes, p4 with ticket and permissions, the allow-list, the model (a
call of a few tokens that holds nothing of a change), mail with journal and
bounces, webhook and P4 Code Review (nothing is posted), the providers of
rewrites (they list their models), and whether the clocks agree. Every check
runs whatever the others say, and what is not well comes with what to do about
it. Nothing is changed, but for a missing p4.state_dir, which is made.

Run it as the user of the workers and with their environment.

flags:
  -stages LIST   what the workers here serve, by commas: workflows, fetch, redact,
                 llm, notify, retention, or all of these (default); rewrite
  -timeout TIME  limit of each check (default 15s)
  -json          print JSON: a list of check, status, detail and fix

examples:
  criticizer doctor
  criticizer doctor -stages fetch,redact
  criticizer doctor -json

Exit status: 0 all is well, or works with a warning; 1 something failed; 2 wrong
usage.
`

// A health is how a thing is.
type health string

const (
	healthy health = "ok"
	ailing  health = "warn" // works, but not for long or not as it should
	broken  health = "fail"
)

// A diagnosis is what one look at one thing came to.
type diagnosis struct {
	Check  string `json:"check"`
	Status health `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func well(detail string, args ...any) diagnosis {
	return diagnosis{Status: healthy, Detail: fmt.Sprintf(detail, args...)}
}

func warning(fix, detail string, args ...any) diagnosis {
	return diagnosis{Status: ailing, Detail: fmt.Sprintf(detail, args...), Fix: fix}
}

// failing takes over the advice that err brings; fix is for one that brings none.
// There is nothing to replay yet.
func failing(err error, fix string) diagnosis {
	if fix == "" {
		fix = strings.TrimSuffix(hintOf(err), ", then replay")
	}
	return diagnosis{Status: broken, Detail: err.Error(), Fix: fix}
}

// denied is failing for what wants a credential: renew says how that is renewed.
func denied(err error, renew string) diagnosis {
	if failure.ClassOf(err) == failure.AuthDenied {
		return failing(err, renew)
	}
	return failing(err, "")
}

// An examination looks at one thing; what it returns has no name yet.
type examination struct {
	name string
	look func(context.Context) []diagnosis
}

// doctor implements criticizer doctor.
func doctor(ctx context.Context, args []string, c console) error {
	flags := c.flags("doctor", doctorUsage)
	stages := flags.String("stages", "", "")
	limit := flags.Duration("timeout", 15*time.Second, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if *limit <= 0 {
		return badUsage("-timeout %s is not above zero", *limit)
	}
	if flags.NArg() > 0 {
		return badUsage("doctor takes flags only: got %q", flags.Arg(0))
	}
	roles, err := rolesNamed(*stages)
	if err != nil {
		return err
	}
	found := examine(ctx, *limit, c.examinations(roles))
	if *asJSON {
		err = c.printJSON(found)
	} else {
		c.printDiagnoses(found)
	}
	if err == nil && slices.ContainsFunc(found, func(d diagnosis) bool { return d.Status == broken }) {
		err = errReported
	}
	return err
}

// stageRoles are the stages of a review.
var stageRoles = []config.Role{
	config.RoleWorkflows, config.RoleFetch, config.RoleRedact, config.RoleLLM, config.RoleNotify, config.RoleRetention,
}

// rolesNamed reads the flag -stages.
func rolesNamed(list string) ([]config.Role, error) {
	if list == "" || list == "all" {
		return stageRoles, nil
	}
	var roles []config.Role
	for name := range strings.SplitSeq(list, ",") {
		role := config.Role(strings.TrimSpace(name))
		if _, ok := databaseRoles[role]; !ok {
			return nil, badUsage("unknown stage %q in -stages: criticizer doctor -h lists them", name)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// examine runs all examinations at once, each within the limit, and returns the
// diagnoses in the order of the examinations.
func examine(ctx context.Context, limit time.Duration, all []examination) []diagnosis {
	found := make([][]diagnosis, len(all))
	var looking sync.WaitGroup
	for i, e := range all {
		looking.Go(func() { found[i] = e.within(ctx, limit) })
	}
	looking.Wait()
	return slices.Concat(found...)
}

// within gives up on a look that does not obey the end of its time.
func (e examination) within(ctx context.Context, limit time.Duration) []diagnosis {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	done := make(chan []diagnosis, 1)
	go func() { done <- e.look(ctx) }()
	var found []diagnosis
	select {
	case found = <-done:
	case <-time.After(limit + time.Second):
		found = []diagnosis{failing(fmt.Errorf("no answer within %s", limit), "see that what it asks answers, or raise -timeout")}
	}
	for i := range found {
		found[i].Check = e.name
	}
	return found
}

func (c console) printDiagnoses(found []diagnosis) {
	for _, d := range found {
		fmt.Fprintf(c.stdout, "%-5s %-10s %s\n", d.Status, d.Check, hanging(d.Detail))
		if d.Fix != "" {
			fmt.Fprintf(c.stdout, "%17sfix: %s\n", "", hanging(d.Fix))
		}
	}
}

// hanging indents the lines after the first.
func hanging(text string) string {
	return strings.TrimPrefix(indented(text, strings.Repeat(" ", 17)), strings.Repeat(" ", 17))
}
