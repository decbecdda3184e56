package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/p4/internal/command"
)

// TestMain makes the test binary p4sim, for tests that need processes.
func TestMain(m *testing.M) {
	if os.Getenv("P4SIM_TEST_PROCESS") != "" {
		main()
	}
	os.Exit(m.Run())
}

type result struct {
	exit           int
	stdout, stderr string
}

func p4(env []string, stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	exit := run(append([]string{"p4"}, args...), env, strings.NewReader(stdin), &stdout, &stderr)
	return result{exit, stdout.String(), stderr.String()}
}

// A record is one decoded dictionary of p4 -G.
type record map[string]string

// records runs p4 -G, which must write nothing to stderr.
func records(t *testing.T, env []string, args ...string) []record {
	t.Helper()
	got := p4(env, "", append([]string{"-G"}, args...)...)
	all := decodeRecords(t, got.stdout)
	failed := slices.ContainsFunc(all, func(r record) bool { return r["severity"] >= "3" })
	if got.stderr != "" || (got.exit == 1) != failed {
		t.Errorf("%q: exit %d, stderr %q, records %v", args, got.exit, got.stderr, all)
	}
	return all
}

func decodeRecords(t *testing.T, text string) []record {
	t.Helper()
	var all []record
	testkit.NoError(t, command.Decode(strings.NewReader(text), func(rec command.Record) error {
		all = append(all, rec.Fields)
		return nil
	}))
	return all
}

// column joins the values of a field.
func column(all []record, key string) string {
	var values []string
	for _, r := range all {
		values = append(values, r[key])
	}
	return strings.Join(values, " ")
}

// holds checks fields; the value "-" stands for a field that is not there.
func holds(t *testing.T, got, want record) {
	t.Helper()
	for key, value := range want {
		if v, ok := got[key]; v != value && (value != "-" || ok) {
			t.Errorf("%s is %q, want %q in %v", key, v, value, got)
		}
	}
}

const smallDepot = `
-- user vera vera@example.com Vera Cruz --
//depot/src/...
-- change 1 user=bruno --
First.
-- add text+k //depot/src/a b.c --
$Id$
one
two
-- add binary base64 //depot/logo.png --
AAECAw==
-- add text //depot/src/odd@#%*name.txt --
odd
-- add symlink //depot/link --
src/a b.c
-- change 2 user=vera --
Second line one.

And three.
-- edit text+k //depot/src/a b.c --
$Id$
one
2
-- move/add text //depot/src/new.txt <- //depot/src/odd@#%*name.txt --
odd
-- edit binary base64 //depot/logo.png --
AAECBA==
-- change 3 user=bruno old=2999 --
Third.
-- job job000001 --
It leaks.
-- job BUG-7 --
It drips.
-- edit text //depot/src/a b.c --
one
-- branch text //depot/rel/a.c <- //depot/src/a b.c --
one
-- change 6 user=bruno --
Gone.
-- delete text //depot/src/new.txt --
-- change 7 user=vera pending --
On its way.
-- edit text //depot/src/a b.c --
-- edit text shelved //depot/src/a b.c --
one
more
-- delete text shelved //depot/logo.png --
`

// smallEnv is an environment that serves smallDepot.
func smallEnv(t *testing.T, more ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "depot.txtar")
	testkit.NoError(t, os.WriteFile(path, []byte(smallDepot), 0o600))
	return append([]string{"P4SIM_DEPOT=" + path, "P4SIM_STATE=" + t.TempDir(), "P4USER=svc", "P4PORT=sim:1666"}, more...)
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	for name, args := range map[string][]string{
		"no command":            nil,
		"a command that writes": {"submit"},
		"an unknown flag":       {"describe", "-Z", "1"},
		"a label":               {"files", "//depot/x@nolabel"},
		"a revision by name":    {"print", "//depot/x#head"},
		"a local path":          {"files", "x.c"},
	} {
		all := records(t, env, args...)
		if len(all) != 1 || all[0]["code"] != "error" || all[0]["severity"] != "3" || all[0]["data"] == "" {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// Warnings and failures as the real client encodes them, and without -G.
func TestMessages(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	got := records(t, env, "describe", "1", "99", "2")
	if column(got, "change") != "1  2" {
		t.Errorf("an unknown change ends the command: %v", got)
	}
	holds(t, got[1], record{"code": "error", "data": "Change 99 unknown.\n", "severity": "3", "generic": "2"})
	holds(t, records(t, env, "files", "//depot/x")[0], record{"code": "error", "data": "//depot/x - no such file(s).\n", "severity": "2", "generic": "17"})
	if got := p4(env, "", "-ztag", "describe", "99"); got != (result{1, "", "Change 99 unknown.\n"}) {
		t.Errorf("without -G: %+v", got)
	}
}

func TestSettingsFromTheFileBesideTheExecutable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	executable := filepath.Join(dir, "p4")
	self, err := os.ReadFile(os.Args[0])
	testkit.NoError(t, err)
	for name, text := range map[string][]byte{"p4": self, "p4sim.conf": []byte(strings.Join(smallEnv(t), "\n"))} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o700))
	}
	cmd := exec.Command(executable, "-ztag", "info", "-s")
	cmd.Env = []string{"P4SIM_TEST_PROCESS=1", "P4USER=mine"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "... userName mine\n... serverAddress sim:1666\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := p4([]string{"P4SIM_STATE=" + dir}, "", "users", "vera"); got.exit != 1 || !strings.HasPrefix(got.stderr, "p4sim: error: ") {
		t.Errorf("without a depot: %+v", got)
	}
}
