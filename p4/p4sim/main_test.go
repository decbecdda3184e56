package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain lets the test binary stand in for p4sim, for tests that need processes.
func TestMain(m *testing.M) {
	if os.Getenv("P4SIM_TEST_PROCESS") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is p4 in a process of its own.
func process(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append([]string{"P4SIM_TEST_PROCESS=1", "PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

func runProcess(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := process(env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

const smallDepot = `
-- user vera vera@example.com Vera Cruz --
//depot/src/...
-- change 1 user=bruno time=2024/05/01:10:00:00 --
First.
-- add text+k //depot/src/a b.c --
$Id$
one
two
-- add binary base64 //depot/logo.png --
AAECAw==
-- add text //depot/src/odd@#%*name.txt --
odd
-- add symlink nonl //depot/link --
src/a b.c
-- change 2 user=vera time=2024/05/02:10:00:00 --
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
-- change 3 user=bruno time=2024/05/03:10:00:00 latin1 old=2999 --
Grüße
-- edit text nonl //depot/src/a b.c --
one
-- change 4 user=bruno time=2024/05/04:10:00:00 restricted --
Secret.
-- add text //depot/secret.txt --
s
-- change 5 user=bruno time=2024/05/05:10:00:00 --
Purged.
-- add text+S //depot/tmp.txt --
t
-- change 6 user=bruno time=2024/05/05:11:00:00 --
Gone.
-- purge text+S //depot/tmp.txt --
-- delete text //depot/src/new.txt --
-- change 7 user=vera time=2024/05/06:10:00:00 pending --
On its way.
-- edit text //depot/src/a b.c --
-- edit text shelved //depot/src/a b.c --
one
more
`

// smallEnv serves a depot written by hand.
func smallEnv(t *testing.T, depot string, more ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "depot.txtar")
	if err := os.WriteFile(path, []byte(depot), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{"P4SIM_DEPOT=" + path, "P4SIM_STATE=" + t.TempDir(), "P4USER=svc", "P4CLIENT=ws", "P4PORT=sim:1666"}, more...)
}

// expect fails unless the command printed exactly this and succeeded.
func expect(t *testing.T, got result, want string) {
	t.Helper()
	if got.exit != 0 || got.stdout != want || got.stderr != "" {
		t.Errorf("exit %d\nstdout %q\n  want %q\nstderr %q", got.exit, got.stdout, want, got.stderr)
	}
}

func TestDescribesEveryKindOfFile(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "describe", "-du", "2"), `Change 2 by vera@vera-ws on 2024/05/02 10:00:00

	Second line one.
	
	And three.

Affected files ...

... //depot/logo.png#2 edit
... //depot/src/a b.c#2 edit
... //depot/src/new.txt#1 move/add
... //depot/src/odd%40%23%25%2Aname.txt#2 move/delete

Moved files ...

... //depot/src/new.txt#1 moved from //depot/src/odd%40%23%25%2Aname.txt#1

Differences ...

==== //depot/logo.png#2 (binary) ====

(... files differ ...)

==== //depot/src/a b.c#2 (text+k) ====

@@ -1,3 +1,3 @@
-$Id: //depot/src/a b.c#1 $
+$Id: //depot/src/a b.c#2 $
 one
-two
+2

`)
	expect(t, p4(env, "", "describe", "3"), "Change 3 by bruno@bruno-ws on 2024/05/03 10:00:00\n\n\tGr\xfc\xdfe\n\n"+
		"Affected files ...\n\n... //depot/src/a b.c#3 edit\n\nDifferences ...\n\n"+
		"==== //depot/src/a b.c#3 (text+k/text) ====\n\n1,3c1\n< $Id: //depot/src/a b.c#2 $\n< one\n< 2\n---\n> one\n\\ No newline at end of file\n\n")
}
