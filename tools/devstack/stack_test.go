package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/testkit"
)

// testStack opens a stack on a directory of its own.
func testStack(t *testing.T) (context.Context, *stack) {
	t.Helper()
	ctx, s, err := openStack(t.Context(), t.TempDir(), &progress{w: io.Discard})
	testkit.NoError(t, err)
	s.stopTimeout = 100 * time.Millisecond
	t.Cleanup(s.close)
	return ctx, s
}

func shell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func TestOneStateDirectoryHasOneDevstack(t *testing.T) {
	t.Parallel()
	_, s := testStack(t)
	if _, _, err := openStack(t.Context(), s.base, s.out); err == nil || !strings.Contains(err.Error(), "another devstack uses") {
		t.Errorf("a second devstack: %v", err)
	}
	if pid, err := holder(s.base); pid != os.Getpid() {
		t.Errorf("it is held by %d, %v", pid, err)
	}
	s.close()
	_, next, err := openStack(t.Context(), s.base, s.out)
	if err != nil {
		t.Fatalf("after the first has closed: %v", err)
	}
	next.close()
}

func TestAChildThatEndsFailsTheStack(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	if _, err := s.run("fragile", shell("echo the disk is full >&2; exit 3")); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	cause := context.Cause(ctx).Error()
	for _, want := range []string{"exit status 3", "fragile.log", "the disk is full"} {
		if !strings.Contains(cause, want) {
			t.Errorf("cause %q lacks %q", cause, want)
		}
	}
}

func TestCloseStopsInReverseAndFailsNothing(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	var order []string
	s.add(func() { order = append(order, "first") })
	if _, err := s.run("polite", shell("exec sleep 600")); err != nil {
		t.Fatal(err)
	}
	s.add(func() { order = append(order, "last") })
	s.close()
	if got := strings.Join(order, " "); got != "last first" {
		t.Errorf("stopped %s", got)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("cause %v, want none but the close", cause)
	}
}

func TestAStuckProcessIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	_, s := testStack(t)
	child := filepath.Join(s.base, "child")
	if _, err := s.run("stubborn", shell("trap '' INT; sleep 600 & echo $! >"+child+".new; mv "+child+".new "+child+"; sleep 600")); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, child)
	s.close()
	pid, err := os.ReadFile(child)
	if err != nil || !gone(strings.TrimSpace(string(pid))) {
		t.Errorf("process %s is still there, %v", pid, err)
	}
}

func TestAwaitReadyQuotesTheLog(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	warm := filepath.Join(s.base, "warm")
	proc, err := s.run("slow", shell("echo warming up; touch "+warm+"; exec sleep 600"))
	testkit.NoError(t, err)
	awaitFile(t, warm)
	err = proc.awaitReady(ctx, 10*time.Millisecond, func(context.Context) error { return errors.New("it is starting") })
	for _, want := range []string{"10ms", "it is starting", proc.logPath, "warming up"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// listen takes a port on address for the time of the test.
func listen(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", address)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestChoosePort(t *testing.T) {
	t.Parallel()
	free, err := options{forTests: true}.choosePort(0)
	testkit.NoError(t, err)
	taken, wildcard := listen(t, loopback+":0"), listen(t, ":0")
	for name, c := range map[string]struct {
		wellKnown int
		forTests  bool
		kept      bool
	}{
		"a free well-known port is used":         {wellKnown: free, kept: true},
		"a well-known port in use is replaced":   {wellKnown: taken},
		"a wildcard listener uses its port, too": {wellKnown: wildcard},
		"tests use any port":                     {wellKnown: free, forTests: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := options{forTests: c.forTests}.choosePort(c.wellKnown)
			if err != nil || got == 0 || (got == c.wellKnown) != c.kept {
				t.Errorf("port %d, %v, with the well-known %d", got, err, c.wellKnown)
			}
		})
	}
}
