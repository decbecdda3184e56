package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testTimeout bounds waiting for an event that takes seconds on an idle machine.
const testTimeout = 4 * time.Minute

// temporalVariable names the environment variable with the path of the temporal
// command; make test sets it.
const temporalVariable = "CRITICIZER_TEST_TEMPORAL_COMMAND"

// need skips the test because something is missing on this machine; if CI is set,
// it fails the test instead.
func need(tb testing.TB, missing string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatal(missing)
	}
	tb.Skip("SKIPPED: " + missing)
}

// program returns the path of the first of the named programs that is installed.
// If none is, it names the Debian package to [need].
func program(tb testing.TB, debian string, names ...string) string {
	tb.Helper()
	if found := lookUp(names...); found != "" {
		return found
	}
	need(tb, fmt.Sprintf("none of %q is installed: install the Debian package %s", names, debian))
	return ""
}

// temporalCommand returns the path of Temporal's command line.
func temporalCommand(tb testing.TB) string {
	tb.Helper()
	found := lookUp(os.Getenv(temporalVariable), "temporal", "../build/bin/temporal")
	if found == "" {
		need(tb, "there is no temporal command: run the test with make test, or set "+temporalVariable)
	}
	return found
}

func lookUp(names ...string) string {
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			if found, err = filepath.Abs(found); err == nil {
				return found
			}
		}
	}
	return ""
}

// buildCommands compiles the commands and p4sim into dir, statically as make build does.
func buildCommands(dir string) error {
	const module = "github.com/criticizer/criticizer/"
	build := exec.Command("go", "build", "-o", dir+"/", module+"worker", module+"starter", module+"criticizer", module+"rewrite/cmd/complaint-rewrite", module+"p4/p4sim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the commands: %w\n%s", err, out)
	}
	return nil
}

// writeFile writes a file and makes its directory.
func writeFile(tb testing.TB, path string, mode os.FileMode, body string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), mode); err != nil {
		tb.Fatal(err)
	}
}

// writeP4 writes a p4 command to path: a script that runs p4sim from binDir with
// the variables, each NAME=value.
func writeP4(tb testing.TB, path, binDir string, variables ...string) {
	tb.Helper()
	script := []string{"export"}
	for _, variable := range append(variables, "PATH="+os.Getenv("PATH")) {
		name, value, _ := strings.Cut(variable, "=")
		script = append(script, name+"="+quote(value))
	}
	writeFile(tb, path, 0o700, "#!/bin/sh\n"+strings.Join(script, " ")+"\nexec "+quote(filepath.Join(binDir, "p4sim"))+" \"$@\"\n")
}

// quote makes s one word of a shell command.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// freeAddress returns a loopback address that no server listens on. Its port is below
// those that Linux gives to outgoing connections: one of them could take the port before
// the server listens.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	const lowest, highest, tries = 10_000, 32_768, 1000
	for range tries {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	tb.Fatal("no port is free")
	return ""
}

// poll calls done every interval and reports whether it returned true in time.
func poll(timeout, interval time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(timeout); !done(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// waitFor waits until done returns true. After testTimeout it fails the test.
func waitFor(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	if !poll(testTimeout, 50*time.Millisecond, done) {
		tb.Fatalf("waiting for %s timed out after %s", what, testTimeout)
	}
}
