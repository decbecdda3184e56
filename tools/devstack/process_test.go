package main

import (
	"context"
	"errors"
	"io"
	"net"
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
	t.Cleanup(s.close)
	return ctx, s
}

func shell(name, script string) program {
	return program{name: name, path: "/bin/sh", args: []string{"-c", script}, stopTimeout: 100 * time.Millisecond}
}

func TestOneStateDirectoryHasOneDevstack(t *testing.T) {
	t.Parallel()
	_, s := testStack(t)
	_, _, err := openStack(t.Context(), s.base, s.out)
	if !errors.Is(err, errLocked) {
		t.Errorf("error %v, want errLocked", err)
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
	if _, err := s.start(shell("fragile", "echo the disk is full >&2; exit 3")); err != nil {
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
	if _, err := s.start(shell("polite", "exec sleep 600")); err != nil {
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
	if _, err := s.start(shell("stubborn", "trap '' INT; sleep 600 & sleep 600")); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(s.base, "run", "stubborn.pid")
	if pid, err := holder(pidFile); err != nil || pid == 0 {
		t.Fatalf("holder %d, %v, want the child", pid, err)
	}
	start := time.Now()
	s.close()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("close took %s", took)
	}
	awaitReleased(t, pidFile)
}

func TestALeftoverIsEndedEvenWithoutItsLeader(t *testing.T) {
	t.Parallel()
	_, first := testStack(t)
	proc, err := startProcess(shell("orphan", "sleep 600 & exit 0"), first.base)
	testkit.NoError(t, err)
	<-proc.done
	first.close()
	pidFile := filepath.Join(first.base, "run", "orphan.pid")
	if pid, _ := holder(pidFile); pid == 0 {
		t.Fatal("the child's child does not hold the lock")
	}
	_, s, err := openStack(t.Context(), first.base, &progress{w: io.Discard})
	testkit.NoError(t, err)
	defer s.close()
	awaitReleased(t, pidFile)
}

func TestAwaitReadyQuotesTheLog(t *testing.T) {
	t.Parallel()
	ctx, s := testStack(t)
	warm := filepath.Join(s.base, "warm")
	proc, err := s.start(shell("slow", "echo warming up; touch "+warm+"; exec sleep 600"))
	testkit.NoError(t, err)
	awaitFile(t, warm)
	err = awaitReady(ctx, proc, 10*time.Millisecond, func(context.Context) error { return errors.New("it is starting") })
	for _, want := range []string{"10ms", "it is starting", proc.logPath, "warming up"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// awaitReleased waits until no process holds pidFile.
func awaitReleased(t *testing.T, pidFile string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if pid, err := holder(pidFile); err != nil || pid == 0 {
			return
		}
	}
	t.Errorf("something still holds %s", filepath.Base(pidFile))
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
	free, err := freePort()
	testkit.NoError(t, err)
	taken, wildcard := listen(t, loopback+":0"), listen(t, ":0")
	for name, c := range map[string]struct {
		wanted, wellKnown int
		forTests          bool
		want              int // 0: any other
		refused           bool
	}{
		"a wanted port is kept":                   {wanted: free, wellKnown: taken, want: free},
		"a wanted port that is in use is refused": {wanted: taken, refused: true},
		"a free well-known port is used":          {wellKnown: free, want: free},
		"a well-known port in use is replaced":    {wellKnown: taken},
		"a wildcard listener uses its port, too":  {wellKnown: wildcard},
		"tests use any port":                      {wellKnown: free, forTests: true},
		"a number that is no port is refused":     {wanted: 70000, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := options{forTests: c.forTests}.choosePort(c.wanted, c.wellKnown, "x-port")
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "-x-port") {
					t.Errorf("error %v, want one that names the flag", err)
				}
				return
			}
			testkit.NoError(t, err)
			if c.want != 0 && got != c.want || c.want == 0 && (got == c.wellKnown || got == 0) {
				t.Errorf("port %d, want %d", got, c.want)
			}
		})
	}
}
