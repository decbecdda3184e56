package e2e

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"text/template"
	"time"
)

//go:embed testdata/mailhost
var mailHostFiles embed.FS

// mailHostDomain is that of all mailboxes. These exist, with any digits appended: author,
// reader, criticizer, and journal, which gets what the criticizer with the same
// digits sends. Mail to gone, with any digits, is accepted and bounces. Mail to
// full, policy and grey is rejected with 452, 554 and 450.
const mailHostDomain = "corp.test"

// A mailHost is a real Postfix and a real Dovecot on loopback, for tests that must not
// rely on a stand-in. Postfix accepts mail for mailHostDomain only, delivers it to
// Dovecot, copies everything from the account criticizer to the account journal, and
// never connects to another host.
//
// It requires Linux, root and Debian's packages postfix, dovecot-imapd and
// dovecot-lmtpd; see newMailHost.
type mailHost struct {
	// SMTPPort and IMAPPort accept clear text, on 127.0.0.1.
	SMTPPort, IMAPPort int
	// Password opens every mailbox by IMAP. The account's name is the local part
	// of the address.
	Password string
	// Log is the log file of Postfix.
	Log string

	dir      string
	lmtpPort int // Dovecot's
}

// startMailHost runs the servers in dir, which is emptied first.
func startMailHost(tb testing.TB, dir string) (*mailHost, error) {
	tb.Helper()
	h := &mailHost{dir: dir, Log: filepath.Join(dir, "log", "postfix.log"), Password: rand.Text()}
	for _, port := range []*int{&h.SMTPPort, &h.IMAPPort, &h.lmtpPort} {
		_, text, _ := net.SplitHostPort(freeAddress(tb))
		*port, _ = strconv.Atoi(text)
	}
	if err := h.configure(); err != nil {
		return nil, fmt.Errorf("configure mail host: %w", err)
	}
	err := errors.Join(runDetached("dovecot", "-c", h.path("etc", "dovecot.conf")), runDetached("postfix", "-c", h.path("etc"), "start"))
	for _, port := range []int{h.SMTPPort, h.IMAPPort, h.lmtpPort} {
		err = errors.Join(err, waitForMailHost(port))
	}
	if err != nil {
		log, _ := os.ReadFile(h.Log) // Postfix says there why it does not start
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, h.Stop()), log)
	}
	return h, nil
}

func (h *mailHost) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// configure creates the directories and the configuration of both servers.
func (h *mailHost) configure() error {
	if err := os.RemoveAll(h.dir); err != nil {
		return err
	}
	for _, d := range []string{"etc", "spool", "lib", "log", "run", "mail"} {
		if err := os.MkdirAll(h.path(d), 0o755); err != nil {
			return err
		}
	}
	pages, err := template.ParseFS(mailHostFiles, "testdata/mailhost/*")
	if err != nil {
		return err
	}
	for _, page := range pages.Templates() {
		var text bytes.Buffer
		if err := page.Execute(&text, map[string]any{"Dir": h.dir, "Host": h, "LMTPPort": h.lmtpPort, "Domain": mailHostDomain}); err != nil {
			return err
		}
		if err := os.WriteFile(h.path("etc", page.Name()), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(runDetached("chown", "mail:mail", h.path("mail")), runDetached("chown", "postfix", h.path("lib")))
}

func waitForMailHost(port int) error {
	const timeout = time.Minute
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("start mail host: port %d does not answer after %s: %w", port, timeout, err)
		}
	}
}

// Stop stops both servers. Their directory stays for inspection.
func (h *mailHost) Stop() error {
	if _, err := os.Stat(h.path("etc", "dovecot.conf")); err != nil {
		return nil // they were never configured
	}
	err := runDetached("postfix", "-c", h.path("etc"), "stop")
	if _, noDovecot := os.Stat(h.path("run", "master.pid")); noDovecot == nil {
		err = errors.Join(err, runDetached("doveadm", "-c", h.path("etc", "dovecot.conf"), "stop"))
	}
	return err
}

// Flush makes Postfix retry everything in its queue.
func (h *mailHost) Flush() error { return runDetached("postqueue", "-c", h.path("etc"), "-f") }

// Queued lists the messages that Postfix has accepted and not yet delivered, and
// why not, one JSON object each.
func (h *mailHost) Queued() (messages []string, err error) {
	out, err := exec.Command("postqueue", "-c", h.path("etc"), "-j").Output()
	if err != nil {
		return nil, fmt.Errorf("list the queue: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// runDetached runs a command. Its output goes to a file: a daemon that it starts would
// keep a pipe open.
func runDetached(name string, args ...string) error {
	out, err := os.CreateTemp("", "mailhost-")
	if err != nil {
		return err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		output, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(output))
	}
	return nil
}

// mailHosts counts the hosts of this process.
var mailHosts atomic.Int32

// newMailHost starts a host for the test, and stops it at the end. On a machine that
// lacks root or one of the servers, it skips the test; in CI and in make chaos, it fails
// instead.
func newMailHost(t *testing.T) *mailHost {
	t.Helper()
	if missing := missingForMailHost(); missing != "" {
		const how = "no mail host: %s is missing (as root, on Debian: apt-get install postfix dovecot-imapd dovecot-lmtpd)"
		if os.Getenv("CI") != "" || os.Getenv(runsVariable) != "" {
			t.Fatalf(how, missing)
		}
		t.Skipf("SKIPPED, NOTHING WAS TESTED: "+how, missing)
	}
	hosts := filepath.Join(os.TempDir(), "criticizer-mailhost") // the servers' users can read no test's own directory
	stopOrphanedMailHosts(hosts)
	dir := filepath.Join(hosts, fmt.Sprintf("%d-%d", os.Getpid(), mailHosts.Add(1)))
	h, err := startMailHost(t, dir)
	if err != nil { // another process may take a free port before a server does
		h, err = startMailHost(t, dir)
	}
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

// missingForMailHost names the first requirement that this machine lacks.
func missingForMailHost() string {
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

// stopOrphanedMailHosts stops the servers of processes that were killed. The directory of
// each host is named for its process, and numbered.
func stopOrphanedMailHosts(hosts string) {
	dirs, _ := os.ReadDir(hosts) // a missing directory has no orphans
	for _, d := range dirs {
		owner, _, _ := strings.Cut(d.Name(), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			orphan := mailHost{dir: filepath.Join(hosts, d.Name())}
			_ = orphan.Stop()
			_ = os.RemoveAll(orphan.dir)
		}
	}
}
