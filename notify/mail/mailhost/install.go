package mailhost

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// packages are Debian's.
var packages = []string{"postfix", "dovecot-imapd", "dovecot-lmtpd"}

// Install sees to it that the servers are on this machine. Where they are
// missing it installs Debian's packages, without starting them, and says so on
// out. It needs root either way.
func Install(out io.Writer) error {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return errors.New("it takes Linux and root")
	}
	if installed() {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("postfix and dovecot are not installed, and there is no apt-get to do so")
	}
	_, _ = fmt.Fprintf(out, "installing %v with apt-get; they are not started\n", packages)
	allow, err := denyStarts()
	if err != nil {
		return err
	}
	defer allow()
	if err := aptGet(append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)...); err != nil {
		// The list of packages may be too old, or not there at all.
		if err := aptGet("update", "-q"); err != nil {
			return err
		}
		return aptGet(append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)...)
	}
	return nil
}

func installed() bool {
	for _, command := range []string{"postfix", "postqueue", "dovecot", "doveadm", "/usr/lib/dovecot/lmtp", "/usr/lib/dovecot/imap"} {
		if _, err := exec.LookPath(command); err != nil {
			return false
		}
	}
	return true
}

// denyStarts keeps packages from starting what they install, until allow is
// called.
func denyStarts() (allow func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Stat(policy); err == nil {
		return func() {}, nil // somebody else decides
	}
	deny := []byte("#!/bin/sh\nexit 101\n")
	return func() { _ = os.Remove(policy) }, os.WriteFile(policy, deny, 0o755) //nolint:gosec // it is a command
}

func aptGet(args ...string) error {
	cmd := exec.Command("apt-get", args...) //nolint:gosec // the arguments are written above
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, output)
	}
	return nil
}

// New starts a host for the test, which stops it. Where there cannot be one the
// test is skipped.
func New(t *testing.T) *Host {
	t.Helper()
	if err := Install(os.Stderr); err != nil {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: no Postfix and Dovecot here: %v", err)
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	hosts := filepath.Join(root, "build", "mailhost")
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

// stopOrphans stops what a process that was killed left running. Each host is
// in a directory named for its process.
func stopOrphans(hosts string) {
	dirs, _ := os.ReadDir(hosts) // without it there is none
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			orphan := Host{dir: filepath.Join(hosts, d.Name())}
			_ = orphan.stopServers()
			_ = os.RemoveAll(orphan.dir)
		}
	}
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
	}
	return "", err
}
