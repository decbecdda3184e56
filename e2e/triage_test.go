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

// scripts are the commands in tools/triage.
var scripts = []string{"list", "count", "show", "replay", "replay-class", "follow"}

// exitNothing is the exit status of a triage script that had nothing to do.
const exitNothing = 3

// An operator runs triage scripts.
type operator struct {
	*installation
	shell []string // environment of the scripts
}

func newOperator(in *installation, command string) operator {
	return operator{in, append(in.operatorEnv(), "CRITICIZER_TRIAGE_COMMAND="+command)}
}

// run runs a script, which must exit with status code, and returns its output and errors.
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

// expect checks that text contains all parts: ids, classes and counts.
func expect(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// An operator lists, shows and replays dead letters of two classes and stages with the
// temporal command only: replay works without our programs (processing 8.5).
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
			t.Skip("SKIPPED: CRITICIZER_TEST_TCTL_COMMAND does not name a tctl command")
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
	o.inject(llmsim.Fault{Kind: llmsim.Refusal, Times: 1})
	third := o.deadLetter("3", failure.ContentPolicy)
	o.write("p4fault", 0o600, `{"fault":"message","text":"Your session has expired, please login again.","severity":3,"generic":4}`)
	fourth := o.deadLetter("4", failure.AuthDenied)
	o.write("p4fault", 0o600, "")

	waitFor(t, "the four dead letters in Temporal's list", func() bool { return len(o.list()) == 4 })
	if got := o.list("-c", "AUTH_DENIED", "-s", "llm"); !slices.Equal(got, slices.Sorted(slices.Values([]string{first, second}))) {
		t.Errorf("dead letters of AUTH_DENIED in llm are %q", got)
	}
	counted := strings.Join(strings.Fields(o.run(exitOK, "count")), " ")
	expect(t, "count", counted, "2 AUTH_DENIED llm", "1 AUTH_DENIED fetch", "1 CONTENT_POLICY llm")
	expect(t, "show", o.run(exitOK, "show", first), "AUTH_DENIED", "401 invalid_api_key")

	// One dead letter, replayed once.
	reason := "INC-42: the key's \"renewal\""
	o.run(exitOK, "replay", "-n", "-r", reason, first)
	o.run(exitUsage, "replay", "-r", reason, first) // needs -y without a terminal
	if n := len(o.list()); n != 4 {
		t.Errorf("%d dead letters after a dry run, want 4", n)
	}
	expect(t, "replay", o.run(exitOK, "replay", "-y", "-r", reason, first), first)
	expect(t, "follow", o.run(exitOK, "follow", first), "findings")
	o.run(exitNothing, "replay", "-y", "-r", reason, first)
	expect(t, "show", o.run(exitNothing, "show", first), "findings")
	waitFor(t, "the replay in Temporal's list", func() bool { return len(o.list()) == 3 })
	var recorded string
	if o.queryRow(`select reason from criticizer.replays`, &recorded); !strings.Contains(recorded, reason) {
		t.Errorf("the replay record has reason %q, want %q", recorded, reason)
	}

	// All dead letters of a class.
	expect(t, "dry run", o.run(exitOK, "replay-class", "-n", "-c", "AUTH_DENIED", "-r", reason), second, fourth)
	expect(t, "replay-class", o.run(exitOK, "replay-class", "-y", "-c", "AUTH_DENIED", "-r", reason), second, fourth)
	for _, id := range []string{second, fourth} {
		expect(t, "follow", o.run(exitOK, "follow", id), "findings")
	}
	o.run(exitNothing, "replay-class", "-y", "-c", "AUTH_DENIED", "-r", reason)
	if calls := o.model.Stats().Calls; calls != 6 {
		t.Errorf("%d model calls, want one per review that reached the model, one per rejection", calls)
	}

	// A replay that fails again, and one that has not ended.
	o.inject(llmsim.Fault{Kind: llmsim.Refusal})
	o.run(exitOK, "replay", "-y", "-f", "-r", reason, third)
	expect(t, "follow of a second failure", o.run(exitFailed, "follow", third), "CONTENT_POLICY")
	_ = interrupt(worker)
	o.run(exitOK, "replay", "-y", "-r", reason, third)
	o.run(exitFailed, "follow", "-t", "1", third)
}

// list returns the workflow IDs that the script list prints, sorted.
func (o operator) list(args ...string) []string {
	o.t.Helper()
	ids := regexp.MustCompile(`review-\S+`).FindAllString(o.run(exitOK, "list", args...), -1)
	slices.Sort(ids)
	return ids
}

// Invalid input exits with an error and a hint.
func TestTriageRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	o := newOperator(newInstallation(t, newDepot(t, map[string]string{"a.go": clean})), temporalCommand(t))
	valid := o
	for argv, status := range map[string]int{
		"list -x": exitUsage, "count AUTH_DENIED": exitUsage, "list -c AUTH": exitUsage, `list -c A"OR"1`: exitUsage,
		"list -s model": exitUsage, "list -l ten": exitUsage, "show": exitUsage, "replay -y x": exitUsage,
		"replay -y -r \t x": exitUsage, "replay-class -y -r why": exitUsage,
		"replay -y -r why nothing": exitFailed, "follow nothing": exitFailed, "replay-class -y -r why -c UNKNOWN": exitNothing,
	} {
		t.Run(argv, func(t *testing.T) {
			t.Parallel()
			args := strings.Split(argv, " ")
			expect(t, "the error", valid.run(status, args[0], args[1:]...), "tools/triage/"+args[0]+": error: ", "\nhint: ")
		})
	}
	o.shell = slices.Concat(o.shell, []string{"TEMPORAL_ADDRESS=127.0.0.1:1"})
	expect(t, "the error", o.run(exitFailed, "list"), "127.0.0.1:1")
	o.shell = slices.Concat(o.shell, []string{"CRITICIZER_TRIAGE_COMMAND=no-such-command"})
	expect(t, "the error", o.run(exitFailed, "list"), "no-such-command")
}

func TestTriageScriptsExplainThemselves(t *testing.T) {
	t.Parallel()
	o := operator{&installation{t: t}, append(os.Environ(), "CRITICIZER_TRIAGE_COMMAND=true")}
	for _, script := range scripts {
		expect(t, script+" -h", o.run(exitOK, script, "-h"), "usage: ../tools/triage/"+script)
		if out, err := exec.Command("sh", "-n", "../tools/triage/"+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}

func TestShellcheckAcceptsScripts(t *testing.T) {
	t.Parallel()
	args := []string{"-x", "-P", "..", "../tools/triage/common.sh", "../tools/p4check.sh", "../tools/composetest.sh", "../tools/systemdtest.sh"}
	for _, script := range scripts {
		args = append(args, "../tools/triage/"+script)
	}
	if out, err := exec.Command(program(t, "shellcheck", "shellcheck"), args...).CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v:\n%s", err, out)
	}
}

// The list of classes in common.sh is complete.
func TestTriageKnowsEveryClass(t *testing.T) {
	t.Parallel()
	known := regexp.MustCompile(`\nclasses='([A-Z_\s]+)'`).FindStringSubmatch(readFile(t, "../tools/triage/common.sh"))
	if known == nil {
		t.Fatal("common.sh lists no classes")
	}
	var want []string
	for _, d := range failure.Descriptions() {
		want = append(want, string(d.Class))
	}
	if got := strings.Fields(known[1]); !slices.Equal(got, want) {
		t.Errorf("common.sh lists the classes\n%v, want\n%v", got, want)
	}
}

// flatten.awk prints one line per JSON value, with its path.
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
