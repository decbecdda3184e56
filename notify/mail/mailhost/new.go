package mailhost

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// New starts a host for the test, and stops it at the end. On a machine that
// lacks root or one of the servers, it skips the test; if CI is set, it fails
// instead.
func New(t *testing.T) *Host {
	t.Helper()
	if missing := missing(); missing != "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("no mail host: %s is missing (Debian: apt-get install postfix dovecot-imapd dovecot-lmtpd)", missing)
		}
		t.Skipf("SKIPPED, NOTHING WAS TESTED: no mail host: %s is missing", missing)
	}
	hosts := filepath.Join(os.TempDir(), "criticizer-mailhost") // the servers' users can read no test's own directory
	stopOrphans(hosts)
	h, err := Start(filepath.Join(hosts, strconv.Itoa(os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Errorf("stop mail host: %v", err)
		}
		if !t.Failed() {
			_ = os.RemoveAll(h.dir)
		}
	})
	return h
}

// missing names the first requirement that this machine lacks.
func missing() string {
	if os.Getuid() != 0 {
		return "root"
	}
	for _, command := range []string{"postfix", "postqueue", "postmap", "dovecot", "doveadm", "/usr/lib/dovecot/lmtp", "/usr/lib/dovecot/imap"} {
		if _, err := exec.LookPath(command); err != nil {
			return command
		}
	}
	return ""
}

// stopOrphans stops the servers of processes that were killed. The directory of
// each host is named for its process.
func stopOrphans(hosts string) {
	dirs, _ := os.ReadDir(hosts) // a missing directory has no orphans
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			orphan := Host{dir: filepath.Join(hosts, d.Name())}
			_ = orphan.Stop()
			_ = os.RemoveAll(orphan.dir)
		}
	}
}
