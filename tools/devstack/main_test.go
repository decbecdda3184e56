package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/testkit"
)

// asCommand makes the test binary behave as devstack itself, so that a test can
// signal a real one.
const asCommand = "DEVSTACK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// devstackCommand is a devstack on root, which is not the project's clone, so
// that the test meets no other.
func devstackCommand(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), asCommand+"=1")
	// With a buffer, Wait would wait for every process that inherited the pipe.
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	testkit.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	t.Cleanup(func() {
		if text, _ := os.ReadFile(out.Name()); t.Failed() {
			t.Logf("devstack %v printed:\n%s", args, text)
		}
		_ = out.Close()
	})
	return cmd
}

// makeRoot makes a directory that devstack takes for the project's clone, with the
// built temporal command.
func makeRoot(t *testing.T) string {
	t.Helper()
	command := os.Getenv("CRITICIZER_TEST_TEMPORAL_COMMAND")
	if command == "" {
		t.Skip("SKIPPED, starts servers: run it with make test, which has built the temporal command")
	}
	root := t.TempDir()
	mustWrite(t, filepath.Join(root, "tools", "temporal", "go.mod"), "module temporal\n", 0o644)
	bin := filepath.Join(root, "build", "bin")
	testkit.NoError(t, os.MkdirAll(bin, 0o755))
	testkit.NoError(t, os.Symlink(command, filepath.Join(bin, "temporal")))
	return root
}

func mustWrite(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	testkit.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.NoError(t, os.WriteFile(path, []byte(content), mode))
}

// execScript records the environment of the command of exec, its pid and the pids
// of the servers.
const execScript = `env | grep ^CRITICIZER_TEST >"$0/env"; cd "$0"/build/exec-*/run; until grep -qw $$ command.pid; do sleep 0.01; done; cat *.pid >"$0/pids"; touch "$0/started"; `

func TestExecStopsEverythingAndPassesTheExitCode(t *testing.T) {
	t.Parallel()
	root := makeRoot(t)
	err := devstackCommand(t, root, "exec", "--", "sh", "-c", execScript+"exit 7", root).Run()
	if got := exitStatus(err); got != 7 {
		t.Errorf("exit code %d (%v), want that of the command, 7", got, err)
	}
	env, _ := os.ReadFile(filepath.Join(root, "env"))
	for _, name := range []string{"CRITICIZER_TEST_DATABASE_URL=postgres://", "CRITICIZER_TEST_TEMPORAL_ADDRESS=127.0.0.1:", "CRITICIZER_TEST_TEMPORAL_UI=http://127.0.0.1:"} {
		if !strings.Contains(string(env), name) {
			t.Errorf("the command's environment lacks %s:\n%s", name, env)
		}
	}
	wantNothingLeft(t, root)
}

func TestExecStopsEverythingOnASignal(t *testing.T) {
	t.Parallel()
	root := makeRoot(t)
	cmd := devstackCommand(t, root, "exec", "--", "sh", "-c", execScript+"sleep 600", root)
	testkit.NoError(t, cmd.Start())
	awaitFile(t, filepath.Join(root, "started"))
	_ = cmd.Process.Signal(syscall.SIGINT)
	if got := exitStatus(cmd.Wait()); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	wantNothingLeft(t, root)
}

func TestDownStopsTheProcessesOfAKilledDevstack(t *testing.T) {
	t.Parallel()
	root := makeRoot(t)
	cmd := devstackCommand(t, root, "exec", "--", "sh", "-c", execScript+"exec sleep 600", root)
	testkit.NoError(t, cmd.Start())
	awaitFile(t, filepath.Join(root, "started"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := devstackCommand(t, root, "down").Run(); err != nil {
		t.Errorf("down: %v", err)
	}
	wantNothingLeft(t, root)
}

func exitStatus(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s does not appear", path)
}

// wantNothingLeft fails if a process that execScript recorded is running or its
// state directory exists.
func wantNothingLeft(t *testing.T, root string) {
	t.Helper()
	pids, err := os.ReadFile(filepath.Join(root, "pids"))
	testkit.NoError(t, err)
	if got := len(strings.Fields(string(pids))); got != 3 {
		t.Errorf("%d children were recorded, want Postgres, Temporal and the command", got)
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		if !gone(pid) {
			t.Errorf("process %s is still there", pid)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(root, "build", "exec-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// gone reports whether the process ends within a minute: init may be slow to reap it.
func gone(pid string) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := exec.Command("kill", "-0", pid).Run(); err != nil {
			return true
		}
	}
	return false
}

func TestRunRejects(t *testing.T) {
	clone, other := t.TempDir(), t.TempDir()
	mustWrite(t, filepath.Join(clone, "tools", "temporal", "go.mod"), "module temporal\n", 0o644)
	for name, c := range map[string]struct {
		dir  string
		args []string
		want string
	}{
		"no command":             {dir: clone, want: "demo"},
		"an unknown command":     {dir: clone, args: []string{"fly"}, want: `"fly"`},
		"another directory":      {dir: other, args: []string{"demo"}, want: "go.mod"},
		"exec without a command": {dir: clone, args: []string{"exec", "--"}, want: "devstack exec --"},
		"a bad port":             {dir: clone, args: []string{"-temporal-port", "x", "exec"}, want: "exit code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(c.dir)
			err := runCommand(t.Context(), c.args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestParseOptions(t *testing.T) {
	clone := t.TempDir()
	mustWrite(t, filepath.Join(clone, "tools", "temporal", "go.mod"), "module temporal\n", 0o644)
	t.Chdir(clone)
	opts, rest, err := parseOptions([]string{"-temporal-port", "7003", "-changes", "3", "exec", "--", "-x"}, io.Discard)
	testkit.NoError(t, err)
	if opts.temporalPort != 7003 || opts.changes != 3 || !slices.Equal(rest, []string{"exec", "--", "-x"}) {
		t.Errorf("got %+v and %q", opts, rest)
	}
}
