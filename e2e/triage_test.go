package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// scripts are the commands of triage.
var scripts = []string{"list", "count", "show", "replay", "replay-class", "follow"}

const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitNothing = 3
)

// An operator runs the scripts of triage.
type operator struct {
	*installation
	shell []string // its environment
}

func newOperator(in *installation, command string) operator {
	return operator{in, append(in.operatorEnv(), "CRITICIZER_TRIAGE_COMMAND="+command)}
}

// run runs a script and returns what it printed on stdout and stderr.
func (o operator) run(code int, script string, args ...string) string {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), filepath.Join("../tools/triage", script), args...)
	cmd.Env = o.shell
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		o.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		o.t.Errorf("%s %q ended with %d (%v), want %d:\n%s", script, args, got, exit, code, out)
	}
	return string(out)
}

// expect checks that text holds every one of the parts, each a line or in one.
func expect(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// An operator's morning: dead letters of two classes and stages, found,
// looked at and replayed with the stock command line (criticizer-processing 8.5).
func TestTriage(t *testing.T) {
	t.Parallel()
	t.Run("temporal", func(t *testing.T) {
		t.Parallel()
		testTriage(t, temporalCommand(t))
	})
	t.Run("tctl", func(t *testing.T) {
		t.Parallel()
		command := os.Getenv("CRITICIZER_TEST_TCTL_COMMAND")
		if command == "" {
			t.Skip("SKIPPED, the scripts were not tested with tctl: CRITICIZER_TEST_TCTL_COMMAND names none")
		}
		testTriage(t, command)
	})
}

func testTriage(t *testing.T, command string) {
	t.Helper()
	o := newOperator(newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}, map[string]string{"b.go": faulty},
		map[string]string{"c.go": faulty}, map[string]string{"d.go": faulty})), command)
	o.disableBreaker()
	worker := o.startWorker()
	o.rejectKey(2)
	first, second := o.deadLetter("1", failure.AuthDenied), o.deadLetter("2", failure.AuthDenied)
	if err := o.model.Inject(llmsim.Fault{Kind: llmsim.Refusal, Times: 1}); err != nil {
		t.Fatal(err)
	}
	third := o.deadLetter("3", failure.ContentPolicy)
	o.write("p4fault", 0o600, `{"fault":"message","id":"MsgServer::LoginExpired"}`)
	fourth := o.deadLetter("4", failure.AuthDenied)
	o.write("p4fault", 0o600, "")

	waitFor(t, "the four dead letters in Temporal's list", func() bool {
		return strings.Contains(o.run(exitOK, "list"), "4 dead-lettered")
	})
	llm := o.run(exitOK, "list", "-c", "AUTH_DENIED", "-s", "llm")
	expect(t, "list of one class and stage", llm, first, second, "2 dead-lettered")
	if strings.Contains(llm, third) || strings.Contains(llm, fourth) {
		t.Errorf("list of AUTH_DENIED in llm holds others:\n%s", llm)
	}
	counted := strings.Join(strings.Fields(o.run(exitOK, "count")), " ")
	expect(t, "count", counted, "2 AUTH_DENIED llm", "1 AUTH_DENIED fetch", "1 CONTENT_POLICY llm", "4 dead-lettered")
	expect(t, "show", o.run(exitOK, "show", first), "dead-lettered: AUTH_DENIED", "renew the credential", "401 invalid_api_key", "error chain\n    ")

	// One, and only once.
	reason := "INC-42: the key's \"renewal\""
	expect(t, "dry run", o.run(exitOK, "replay", "-n", "-r", reason, first), "would reset "+first)
	expect(t, "replay without a terminal", o.run(exitUsage, "replay", "-r", reason, first), "-y")
	expect(t, "list after a dry run", o.run(exitOK, "list"), "4 dead-lettered")
	expect(t, "replay", o.run(exitOK, "replay", "-y", "-r", reason, first), "replayed "+first+": run ")
	expect(t, "follow", o.run(exitOK, "follow", first), "done: findings")
	expect(t, "second replay", o.run(exitNothing, "replay", "-y", "-r", reason, first), "is not dead-lettered but done", "nothing was changed")
	expect(t, "show", o.run(exitNothing, "show", first), "done: findings")
	waitFor(t, "the replay in Temporal's list", func() bool {
		return strings.Contains(o.run(exitOK, "list"), "3 dead-lettered; 1 other")
	})
	var output string
	err := o.database.Conn(t).QueryRow(t.Context(), `select reason from criticizer.replays`).Scan(&output)
	if err != nil || !strings.Contains(output, reason) {
		t.Errorf("the evidence on record is %q (%v), want %q", output, err, reason)
	}

	// All of a class, and only those.
	expect(t, "dry run", o.run(exitOK, "replay-class", "-n", "-c", "AUTH_DENIED", "-r", reason), second, fourth)
	expect(t, "replay-class", o.run(exitOK, "replay-class", "-y", "-c", "AUTH_DENIED", "-r", reason),
		"replayed "+second, "replayed "+fourth, "2 replayed, 0 skipped, 0 failed")
	for _, id := range []string{second, fourth} {
		expect(t, "follow", o.run(exitOK, "follow", id), "done: findings")
	}
	expect(t, "replay-class of nothing", o.run(exitNothing, "replay-class", "-y", "-c", "AUTH_DENIED", "-r", reason), "AUTH_DENIED")
	if calls := o.model.Stats().Calls; calls != 6 {
		t.Errorf("%d model calls, want one per review that reached the model, one per refusal", calls)
	}

	// A replay that dies again, and one that is not at its end.
	if err := o.model.Inject(llmsim.Fault{Kind: llmsim.Refusal}); err != nil {
		t.Fatal(err)
	}
	o.run(exitOK, "replay", "-y", "-f", "-r", reason, third)
	expect(t, "follow of a second death", o.run(exitFailed, "follow", third), "dead-lettered: CONTENT_POLICY")
	if err := worker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	o.run(exitOK, "replay", "-y", "-r", reason, third)
	expect(t, "follow without a worker", o.run(exitFailed, "follow", "-t", "1", third), "in 1 seconds")
}

// Bad input is one line with a hint and changes nothing.
func TestTriageRefuses(t *testing.T) {
	t.Parallel()
	o := newOperator(newInstallation(t, newDepot(t, map[string]string{"a.go": clean})), temporalCommand(t))
	there := o
	for _, tc := range []struct {
		name   string
		code   int
		argv   string
		setKey string
	}{
		{"an unknown option", exitUsage, "list -x", "list -h"},
		{"a stray argument", exitUsage, "count AUTH_DENIED", "takes options only"},
		{"an unknown class", exitUsage, "list -c AUTH", "no error class 'AUTH'"},
		{"a class that is a query", exitUsage, `list -c A"OR"1`, "no error class"},
		{"an unknown stage", exitUsage, "list -s model", "the stages are: fetch llm notify"},
		{"a limit that is no number", exitUsage, "list -l ten", "not a number above 0"},
		{"no workflow id", exitUsage, "show", "one workflow id"},
		{"no reason", exitUsage, "replay -y x", "no reason is given"},
		{"a blank reason", exitUsage, "replay -y -r \t x", "no reason is given"},
		{"no class", exitUsage, "replay-class -y -r why", "no error class is given"},
		{"an unknown workflow", exitFailed, "replay -y -r why nothing", "workflow not found for ID: nothing"},
		{"an unknown workflow to follow", exitFailed, "follow nothing", "tools/triage/list"},
		{"a class of which nothing is dead", exitNothing, "replay-class -y -r why -c UNKNOWN", "tools/triage/count"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			argv := strings.Split(tc.argv, " ")
			out := there.run(tc.code, argv[0], argv[1:]...)
			expect(t, "the refusal", out, "tools/triage/"+argv[0]+": error: ", "\nhint: ", tc.setKey)
		})
	}
	o.shell = slices.Concat(o.shell, []string{"TEMPORAL_ADDRESS=127.0.0.1:1"})
	expect(t, "the refusal", o.run(exitFailed, "list"), "Temporal did not answer", "TEMPORAL_ADDRESS is '127.0.0.1:1'")
	o.shell = slices.Concat(o.shell, []string{"CRITICIZER_TRIAGE_COMMAND=no-such-command"})
	expect(t, "the refusal", o.run(exitFailed, "list"), "there is no command no-such-command")
}

func TestTriageScriptsExplainThemselves(t *testing.T) {
	t.Parallel()
	o := operator{&installation{t: t}, append(os.Environ(), "CRITICIZER_TRIAGE_COMMAND=true")}
	for _, script := range scripts {
		expect(t, script+" -h", o.run(exitOK, script, "-h"), "usage: tools/triage/"+script)
		if out, err := exec.Command("sh", "-n", "../tools/triage/"+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
	if found, err := exec.LookPath("shellcheck"); err == nil {
		args := []string{"-x", "-P", "..", "../tools/triage/common.sh"}
		for _, script := range scripts {
			args = append(args, "../tools/triage/"+script)
		}
		if out, err := exec.Command(found, args...).CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %v:\n%s", err, out)
		}
	}
}

// The scripts know the classes without asking anybody.
func TestTriageKnowsEveryClass(t *testing.T) {
	t.Parallel()
	common, err := os.ReadFile("../tools/triage/common.sh")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`\nclasses='([A-Z_\s]+)'`).FindSubmatch(common)
	if known == nil {
		t.Fatal("common.sh lists no classes")
	}
	var want []string
	for _, d := range failure.Descriptions() {
		want = append(want, string(d.Class))
	}
	if got := strings.Fields(string(known[1])); !slices.Equal(got, want) {
		t.Errorf("common.sh knows the classes\n%v, want\n%v", got, want)
	}
}

// The reader of JSON that the scripts bring along holds on to its promises.
func TestFlatten(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":{"b":"x"},"c":[1,{"d":null}],"e":[],"f":{},"g":true}`:              "a.b\tx\nc.0\t1\nc.1.d\tnull\ng\ttrue\n",
		`{"a":"one\ntwo \u001b[31m \"three\" \u003cfour\u003e \u0026 C:\\five"}`: "a\t" + `one\ntwo \u001b[31m "three" <four> & C:\five` + "\n",
		"{\n  \"a\" : [ \"} ] , \" ,\n 2 ]\n}\n":                                 "a.0\t} ] , \na.1\t2\n",
	} {
		cmd := exec.Command("awk", "-f", "../tools/triage/flatten.awk")
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s became\n%s(%v), want\n%s", strconv.Quote(in), out, err, want)
		}
	}
}
