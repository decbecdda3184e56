package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// execScript records the environment of the command of exec and its process ID.
const execScript = `env | grep ^CRITICIZER_TEST >"$0/env"; echo $$ >"$0/pid"; touch "$0/started"; `

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

// The guards of its processes end them.
func TestAKilledDevstackLeavesNoProcess(t *testing.T) {
	t.Parallel()
	root := makeRoot(t)
	cmd := devstackCommand(t, root, "exec", "--", "sh", "-c", execScript+"exec sleep 600", root)
	testkit.NoError(t, cmd.Start())
	awaitFile(t, filepath.Join(root, "started"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	wantNoProcess(t, root)
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

// wantNothingLeft fails if the command or a server of exec is running or its state directory
// exists.
func wantNothingLeft(t *testing.T, root string) {
	t.Helper()
	wantNoProcess(t, root)
	if left, _ := filepath.Glob(filepath.Join(root, "build", "exec-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// wantNoProcess fails if the command or a server of exec runs for 20 seconds more: init may be
// slow to reap it.
func wantNoProcess(t *testing.T, root string) {
	t.Helper()
	pid, errPID := os.ReadFile(filepath.Join(root, "pid"))
	env, errEnv := os.ReadFile(filepath.Join(root, "env"))
	testkit.NoError(t, errors.Join(errPID, errEnv))
	if !gone(strings.TrimSpace(string(pid))) {
		t.Errorf("process %s is still there", pid)
	}
	for _, server := range address.FindAllString(string(env), -1) {
		_, port, _ := net.SplitHostPort(server)
		number, err := strconv.Atoi(port)
		testkit.NoError(t, err)
		for deadline := time.Now().Add(20 * time.Second); !isFree(number); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("a server listens on %s", server)
				break
			}
		}
	}
}

// gone reports whether the process ends within 20 seconds: init may be slow to reap it.
func gone(pid string) bool {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
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
		"a bad number":           {dir: clone, args: []string{"-changes", "x", "exec"}, want: "exit code 2"},
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
	opts, rest, err := parseOptions([]string{"-changes", "3", "exec", "--", "-x"}, io.Discard)
	testkit.NoError(t, err)
	if opts.changes != 3 || !slices.Equal(rest, []string{"exec", "--", "-x"}) {
		t.Errorf("got %+v and %q", opts, rest)
	}
}
