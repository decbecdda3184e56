package p4

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// Nothing is inherited, and the ticket is not in the arguments.
func TestEnvironmentIsBuiltFromNothing(t *testing.T) {
	for _, name := range []string{"P4CONFIG", "P4HOST", "P4LOGINSSO", "P4DEBUG", "P4LANGUAGE", "P4DIFF", "LD_PRELOAD"} {
		t.Setenv(name, "inherited")
	}
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"})
	fetcher := f.fetcher(func(c *Config) { c.Ticket = secret.New("TICKET") })
	if _, err := fetcher.Read(t.Context(), 12, review.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(f.dir, "state")
	want := []string{
		"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + state, "PWD=" + state,
		"P4PORT=" + f.dir, "P4USER=reader", "P4CHARSET=none", "P4CLIENT=criticizer-has-no-workspace",
		"P4CLIENTPATH=" + state, "P4CONFIG=", "P4ENVIRO=" + state + "/p4enviro", "P4ALIASES=" + state + "/no-aliases",
		"P4TICKETS=" + state + "/p4tickets", "P4TRUST=" + state + "/p4trust", "P4PASSWD=TICKET",
	}
	for _, c := range f.calls() {
		if !slices.Equal(c.Env, want) || c.Dir != state {
			t.Errorf("%s ran in %s with\n%s\nwant\n%s", c.Args, c.Dir, strings.Join(c.Env, "\n"), strings.Join(want, "\n"))
		}
		if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "TICKET") }) {
			t.Errorf("the ticket is in the arguments: %q", c.Args)
		}
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("state directory: %v, %v; want mode 0700", info, err)
	}
}

// Each argument is one token, and no shell interprets it (security 9.2.2).
func TestArgumentsReachTheProcessAsTheyAre(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	const path = "//depot/$(touch x) `id`; a & b | c > d 'e' \"f\" \\g ~"
	f.submitted(12, rev{path: path, rev: 1, action: "add", data: "new\n"})
	change, err := f.fetch(12)
	if err != nil || change.Files[0].Diff == "" {
		t.Fatalf("change = %+v, %v", change, err)
	}
	if got := f.calls()[3].Lines; !slices.Equal(got, []string{path + "#1"}) {
		t.Errorf("lines = %q", got)
	}
}

// An operand cannot become an option or a second argument (security 9.2.3).
func TestOperandsThatLookLikeOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, operand := range []string{"-o/etc/passwd", "-", "", "a\nb", "a\rb", "a\x00b"} {
		for _, c := range []command.Cmd{{Name: "print", Operands: []string{operand}}, {Name: "print", Lines: []string{"//depot/f#1", operand}}} {
			if args, err := c.Args(); failure.ClassOf(err) != failure.InvariantViolated {
				t.Errorf("arguments of %q = %q, %v; want an error", operand, args, err)
			}
		}
	}
}

// The end of the context kills a process and a child that ignore SIGTERM (security 9.2.3).
func TestCancellingKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.replies["info -s"] = reply{LeavesChild: true, IgnoresTerm: true}
	fetcher := f.fetcher(func(c *Config) { c.limits.killGrace = 100 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := fetcher.Info(ctx)
		ended <- err
	}()
	child := childOf(t, f)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	assertDead(t, child)
}

// A process ends at the limits of time and output, and takes a child that it leaves along.
func TestEveryProcessEnds(t *testing.T) {
	t.Parallel()
	for want, script := range map[failure.Class]reply{
		failure.NetworkTimeout:   {IgnoresTerm: true},
		failure.TooLarge:         {IgnoresTerm: true, Out: stat("desc", strings.Repeat("x", 1<<20))},
		failure.UpstreamInternal: {LeavesChild: true, Out: stat("caseHandling", "sensitive")},
	} {
		f := newFake(t)
		f.replies["info -s"] = script
		fetcher := f.fetcher(func(c *Config) {
			c.Timeout, c.limits.outputBytes, c.limits.killGrace = time.Minute, 1<<10, 100*time.Millisecond
			if want == failure.NetworkTimeout {
				c.Timeout = time.Second
			}
		})
		if _, err := fetcher.Info(t.Context()); failure.ClassOf(err) != want {
			t.Errorf("error = %v, want %s", err, want)
		}
		if script.LeavesChild {
			assertDead(t, childOf(t, f))
		}
	}
}

func TestCommandThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"p4", "state"} {
		f := newFake(t)
		fetcher := f.fetcher()
		testkit.NoError(t, os.RemoveAll(filepath.Join(f.dir, gone)))
		_, err := fetcher.Info(t.Context())
		if failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("without %s: error = %v, want ConfigInvalid", gone, err)
		}
	}
}

// Logs hold the command and counts, and no values (security 9.2.4).
func TestLogHoldsCountsOnly(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.describes(12, []string{"desc", "PRIVATE words"}, rev{path: "//depot/private", rev: 1, action: "add", data: "private\n"})
	f.has(rev{path: "//depot/private", rev: 1, data: "private\n"})
	fetcher := f.fetcher(func(c *Config) { c.Ticket = secret.New("TICKET") })
	if _, err := fetcher.Read(t.Context(), 12, review.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	commands := f.logged("p4 command ended")
	if len(commands) != 6 {
		t.Fatalf("log has %d commands, want 6:\n%s", len(commands), &f.log)
	}
	if c := commands[3]; c["command"] != "print" || c["operands"] != 1.0 || c["records"] != 3.0 || c["exit"] != 0.0 {
		t.Errorf("the log of print is %v", c)
	}
	for _, value := range []string{"rivate", "PRIVATE", "TICKET", "ann", "reader", f.dir} {
		if strings.Contains(f.log.String(), value) {
			t.Errorf("log holds %q:\n%s", value, &f.log)
		}
	}
}

// childOf waits for the child that the scripted p4 leaves.
func childOf(t *testing.T, f *fake) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if data, err := os.ReadFile(filepath.Join(f.dir, "child")); err == nil {
			pid, err := strconv.Atoi(string(data))
			testkit.NoError(t, err)
			return pid
		}
	}
	t.Fatal("p4 left no child")
	return 0
}

// assertDead waits until a process has ended or is a zombie.
func assertDead(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(status), ") Z ") {
			return
		}
	}
	t.Errorf("process %d still runs", pid)
}
