package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// A hint is a command in a text that the programs print. It ends with the line, or at "; ".
type hint struct {
	at      string // file and line
	command string // with the verbs of its format
}

var (
	inText  = regexp.MustCompile(`(?m)\bcriticizer(-starter)? [a-z-]+.*?(; |$)`)
	inTemp  = regexp.MustCompile(`(?m)\btemporal (operator|workflow|task-queue|schedule) .*?(; |$)`)
	verb    = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
	notText = []string{"Long", "Short", "Example", "Use"} // the help: TestExamplesCanBeTyped has its commands
)

// commandsIn returns the commands in a printed text.
func commandsIn(text string) (commands []string) {
	for _, pattern := range []*regexp.Regexp{inText, inTemp} {
		for _, c := range pattern.FindAllString(text, -1) {
			c = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(c), ";"))
			first := strings.Fields(c)[1]
			if strings.HasPrefix(c, "temporal ") || slices.Contains(subcommands(), first) {
				commands = append(commands, c)
			}
		}
	}
	return commands
}

// subcommands are those of criticizer and of criticizer-starter.
func subcommands() []string {
	names := []string{"help", "change-commit", "shelve-commit", "drain", "install"}
	for _, cmd := range newTree().Commands() {
		names = append(names, cmd.Name())
	}
	return names
}

// hintsInSource finds the commands in the texts of the reviewer's programs.
func hintsInSource(t *testing.T) (found []hint) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"rewrite", "eval", "tools", "e2e", "build", ".git"}, d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		help := map[ast.Expr]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				key, _ := n.Key.(*ast.Ident)
				return key == nil || !slices.Contains(notText, key.Name)
			case *ast.CallExpr: // that makes a command from its help
				if name := calledBy(n); name == "group" || strings.HasSuffix(name, "Command") {
					for _, arg := range n.Args {
						help[arg] = true
					}
				}
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if err != nil || help[n] {
					return true
				}
				if required, ok := reflect.StructTag(text).Lookup("required"); ok {
					text = required
				}
				for _, c := range commandsIn(text) {
					found = append(found, hint{set.Position(n.Pos()).String(), c})
				}
			}
			return true
		})
		return nil
	})
	testkit.NoError(t, err)
	return found
}

// unprinted are the texts that only look like hints.
var unprinted = []string{"criticizer feedback", "criticizer artifact id", "criticizer review show", "criticizer change-commit"}

func calledBy(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// Each command in a text can be pasted: the programs parse it.
func TestHintsParse(t *testing.T) {
	t.Parallel()
	starter := buildStarter(t)
	hints := hintsInSource(t)
	if len(hints) < 40 {
		t.Errorf("%d hints were found: this test does not read the sources", len(hints))
	}
	for _, h := range hints {
		if h.command == "criticizer-starter change-commit" {
			h.command += " 7" // appended where it is printed
		}
		if slices.ContainsFunc(unprinted, func(u string) bool { return strings.HasPrefix(h.command+" %s", u+" %") || h.command == u }) {
			continue
		}
		typed := words(verb.ReplaceAllStringFunc(strings.ReplaceAll(h.command, "--type %s", "--type Int"), func(v string) string {
			if strings.Contains(h.command, " artifact ") {
				return "raw:7"
			}
			return "7"
		}))
		var out string
		var failed bool
		switch typed[0] {
		case "criticizer":
			got := say(t, nil, append([]string{"--config", "missing.yaml"}, typed[1:]...)...)
			out, failed = got.err, got.status == 2
		case "criticizer-starter":
			out, failed = execute(t, nil, starter, append([]string{"--config", "missing.yaml"}, typed[1:]...), 2)
		case "temporal":
			out, failed = execute(t, nil, temporalCommand(t), append(typed[1:], "--help"), 1)
		}
		if failed {
			t.Errorf("%s: %s: %s", h.at, h.command, out)
		}
	}
}

// execute runs a program and reports whether it ended with the status.
func execute(t *testing.T, env []string, program string, args []string, status int) (out string, ended bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	return string(text), err != nil && cmd.ProcessState.ExitCode() == status
}

func buildStarter(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "criticizer-starter")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../starter").CombinedOutput(); err != nil {
		t.Fatalf("build the starter: %v: %s", err, out)
	}
	return program
}

// temporalCommand returns the temporal command of make test.
func temporalCommand(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CRITICIZER_TEST_TEMPORAL_COMMAND")
	switch {
	case program == "" && os.Getenv("CI") != "":
		t.Fatal("CRITICIZER_TEST_TEMPORAL_COMMAND is not set: run the tests with make test")
	case program == "":
		t.Skip("SKIPPED, no temporal command: CRITICIZER_TEST_TEMPORAL_COMMAND is not set; make test sets it")
	}
	return program
}

// Each hint is followed in the state in which it is printed, and its commands succeed.
func TestHintsWork(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	starter, temporal := buildStarter(t), temporalCommand(t)
	dir, followed := t.TempDir(), map[string]bool{}
	follow := func(env map[string]string, typed ...string) {
		t.Helper()
		got := s.with(env, typed...)
		commands := commandsIn(got.out + got.err)
		if len(commands) == 0 {
			t.Errorf("%v prints no command: %+v", typed, got)
		}
		vars := []string{
			"CRITICIZER_TEMPORAL_ADDRESS=" + s.address, "CRITICIZER_TEMPORAL_NAMESPACE=" + s.runs.Name, "CRITICIZER_STARTER_SPOOL_DIR=" + filepath.Join(dir, "spool"),
		}
		for _, c := range commands {
			followed[c] = true
			args := words(strings.ReplaceAll(c, "DIR", dir))
			switch args[0] {
			case "criticizer":
				if a := s.with(env, args[1:]...); a.status != 0 && !(args[1] == "doctor" && a.out != "") { // it finds problems
					t.Errorf("%v prints %q, which fails: %s", typed, c, a.err)
				}
			case "criticizer-starter":
				typed := args[1:]
				if typed[0] == "change-commit" {
					typed = append(slices.Clone(typed), "--timeout", "1m") // a busy machine answers late
				}
				if out, failed := execute(t, vars, starter, typed, 1); failed || strings.Contains(out, "is spooled") {
					t.Errorf("%v prints %q, which fails: %s", typed, c, out)
				} else if started := regexp.MustCompile(`workflow (\S+) run`).FindStringSubmatch(out); started != nil {
					_ = s.runs.GetWorkflow(t.Context(), started[1], "").Get(t.Context(), nil) // the next step has the fakes for itself
				}
			case "temporal":
				if out, failed := execute(t, nil, temporal, args[1:], 1); failed {
					t.Errorf("%v prints %q, which fails: %s", typed, c, out)
				}
			}
		}
	}
	why := []string{"--reason", reason}

	follow(nil, "status", "9")
	follow(nil, "why", "9")
	follow(nil, "deadletter", "show", "99")
	follow(nil, "delivery", "show", "99")
	follow(nil, append(why, "deadletter", "replay", "99")...)
	follow(nil, "feedback", "accept", "nothing", "--reason", reason)
	follow(map[string]string{"CRITICIZER_LOG_LEVEL": "loud"}, "top")
	follow(map[string]string{"CRITICIZER_TEMPORAL_NAMESPACE": "missing-" + s.runs.Name}, "top")
	follow(nil, "doctor", "--roles", "workflows") // the retention of a test is short
	follow(nil, "doctor", "--roles", "notify")    // without keys
	paths := map[string]string{"CRITICIZER_P4_ALLOWED_PATHS": "//depot/..."}
	follow(paths, "allowlist", "show")
	follow(paths, "allowlist", "check", "//other/file")

	empty := map[string]string{"CRITICIZER_DATABASE_URL": storetest.NewEmpty(t).URL.Reveal()}
	follow(empty, "deadletter", "list")
	if got := s.with(empty, "deadletter", "list"); got.status != 0 {
		t.Errorf("the hint does not repair the database: %s", got.err)
	}

	s.review(4711, errDenied)
	id := s.letterOf(4711)
	follow(nil, "review", "show", "4711")
	s.must(append(why, "deadletter", "resolve", id)...)
	follow(nil, append(why, "deadletter", "resolve", id)...)
	follow(nil, append(why, "deadletter", "replay", id)...)

	s.review(4712, errDenied)
	again := s.letterOf(4712)
	s.world.Fail("Review", errDenied)
	s.must(append(why, "deadletter", "replay", again)...)
	s.ended(4712)
	follow(nil, append(why, "deadletter", "replay", again)...)
	follow(nil, append(why, "deadletter", "replay", s.letterOf(4712))...) // escalated
	s.ended(4712)

	s.review(4713)
	sent := deliveryOf(s, 4713)
	follow(nil, append(why, "delivery", "resend", sent)...)

	s.review(4714, errDenied)
	_, err := s.runs.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: s.runs.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: requestFor(4714).Key},
	})
	testkit.NoError(t, err)
	testkit.Eventually(t, "deleted", func() bool {
		_, err := s.runs.current(t.Context(), requestFor(4714).Key)
		return errors.Is(err, errForgotten)
	})
	follow(nil, append(why, "deadletter", "replay", s.letterOf(4714))...)

	// A delivery of a review in progress.
	_, err = s.database.Open(t, store.RoleBookkeeping).OpenJob(t.Context(), requestFor(4715), "run")
	testkit.NoError(t, err)
	_, err = s.database.Open(t, store.RoleNotify).PrepareDeliveries(t.Context(), 4715, 1, []string{"alice@corp.test"})
	testkit.NoError(t, err)
	follow(nil, append(why, "forget", "1")...)
	follow(nil, append(why, "forget", "4715")...)
	pending := deliveryOf(s, 4715)
	follow(nil, append(why, "delivery", "resend", pending)...)
	s.must(append(why, "delivery", "waive", pending)...)
	follow(nil, append(why, "delivery", "waive", pending)...)

	// A recipient that the mail server refuses: the review is replayed after the decision.
	s.world.Fail("Send", failure.Errorf(failure.RecipientRejected, "no such mailbox"))
	s.start(4716)
	s.ended(4716)
	refused := deliveryOf(s, 4716)
	follow(nil, append(why, "delivery", "resend", refused)...)
	s.ended(4716)

	// A mail that may have been accepted, and one that bounced.
	s.world.Fail("Send", failure.Errorf(failure.DeliveryAmbiguous, "the connection broke"))
	s.start(4717)
	s.ended(4717)
	held := deliveryOf(s, 4717, review.DeliveryPending)
	settled := map[string]string{"CRITICIZER_MAIL_SETTLE": "1ns"}
	follow(nil, append(why, "forget", "4717")...)
	follow(settled, append(why, "delivery", "readdress", held, "other@corp.test")...)
	_, err = s.database.Conn(t).Exec(t.Context(), `update criticizer.deliveries set status = 'failed', notified_at = null, error_class = 'RECIPIENT_REJECTED', bounced_at = now() where id = $1`, sent)
	testkit.NoError(t, err)
	follow(settled, "delivery", "show", sent)

	// A dead letter that another operator replays.
	s.review(4718, errDenied)
	taken := s.open(4718)
	release, ok, err := s.database.Open(t, store.RoleOperator).HoldDeadLetter(t.Context(), taken.ID)
	if err != nil || !ok {
		t.Fatalf("hold the dead letter: %t, %v", ok, err)
	}
	follow(nil, append(why, "deadletter", "replay", fmt.Sprint(taken.ID))...)
	release()

	// A changelist that has reviews under the number of its shelf, too.
	s.review(4719)
	s.review(4720)
	_, err = s.database.Conn(t).Exec(t.Context(), `insert into criticizer.contents (changelist_id, review_version, shelved, digest, shelf_of) values (4720, 1, false, '', 4719)
		on conflict on constraint contents_of_review do update set shelf_of = excluded.shelf_of`)
	testkit.NoError(t, err)
	follow(nil, append(why, "forget", "4720")...)
	follow(nil, append(why, "review", "rerun", "4720", "--gaps")...)

	for _, h := range hintsInSource(t) {
		if strings.HasPrefix(h.command, "criticizer help ") && s.criticizer(words(h.command)[1:]...).status == 0 {
			continue // in any state
		}
		if !strings.HasPrefix(h.at, "../criticizer/") || slices.Contains(unprinted, h.command) || elsewhere[h.command] != "" {
			continue
		}
		var pattern strings.Builder
		for i, fixed := range verb.Split(h.command, -1) {
			if i > 0 {
				pattern.WriteString(`\S+`)
			}
			pattern.WriteString(regexp.QuoteMeta(fixed))
		}
		whole := regexp.MustCompile("^" + pattern.String() + "$")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(followed)), whole.MatchString) {
			t.Errorf("%s: no state of this test prints %q: add one, or say in elsewhere why not", h.at, h.command)
		}
	}
}

// elsewhere says which hints are not followed here, and why.
var elsewhere = map[string]string{
	"criticizer eval record DIR":                    "calls a model",
	"criticizer why %d --files":                     "needs the keyset of the worker: TestWhy has it",
	"criticizer-starter change-commit":              "the changelist follows; TestWhy has the state",
	"criticizer delivery reconcile":                 "needs the schedule of a worker: TestReconcileWithoutASchedule has the error without one",
	"criticizer delivery list --status failed":      "is printed by reconcile",
	"criticizer top":                                "is printed after Ctrl-C in reconcile",
	"criticizer redact --explain < FILE":            "TestRedactExplainsWithoutTheSecret runs it",
	"criticizer review show %d --review-version %d": "needs the keyset of the worker: the end-to-end tests have it",
}

// deliveryOf returns the ID of a delivery of the changelist, with one of the states if any is given.
func deliveryOf(s *environment, cl review.Changelist, states ...review.DeliveryStatus) string {
	s.t.Helper()
	found, err := s.database.Open(s.t, store.RoleOperator).FindDeliveries(s.t.Context(), store.DeliveryFilter{Changelist: cl, Limit: 10})
	testkit.NoError(s.t, err)
	for _, d := range found {
		if len(states) == 0 || slices.Contains(states, d.Status) {
			return fmt.Sprint(d.ID)
		}
	}
	s.t.Fatalf("no delivery of %d is %v: %+v", cl, states, found)
	return ""
}
