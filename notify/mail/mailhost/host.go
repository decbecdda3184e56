// Package mailhost runs a real Postfix and a real Dovecot on loopback, for tests
// that must not rely on a stand-in. Postfix accepts mail for the domain corp.test
// only, delivers it to Dovecot, copies everything from the account criticizer to
// the account journal, and never connects to another host.
//
// It requires Linux, root and Debian's packages postfix, dovecot-imapd and
// dovecot-lmtpd; see [New].
package mailhost

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
	"strings"
	"text/template"
	"time"
)

//go:embed etc
var etc embed.FS

// Domain is that of all mailboxes. These exist, with any digits appended: author,
// reader, criticizer, and journal, which gets what the criticizer with the same
// digits sends. Mail to gone, with any digits, is accepted and bounces. Mail to
// full, policy and grey is rejected with 452, 554 and 450.
const Domain = "corp.test"

// A Host is a running mail server.
type Host struct {
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

// Start runs the servers in dir, which is emptied first. Another process may take a free
// port before a server does, so Start tries twice.
func Start(dir string) (*Host, error) {
	h, err := start(dir)
	if err != nil {
		h, err = start(dir)
	}
	return h, err
}

func start(dir string) (*Host, error) {
	h := &Host{dir: dir, Log: filepath.Join(dir, "log", "postfix.log"), Password: rand.Text()}
	for _, port := range []*int{&h.SMTPPort, &h.IMAPPort, &h.lmtpPort} {
		var err error
		if *port, err = freePort(); err != nil {
			return nil, err
		}
	}
	if err := h.configure(); err != nil {
		return nil, fmt.Errorf("configure mail host: %w", err)
	}
	err := errors.Join(run("dovecot", "-c", h.path("etc", "dovecot.conf")), run("postfix", "-c", h.path("etc"), "start"))
	for _, port := range []int{h.SMTPPort, h.IMAPPort, h.lmtpPort} {
		err = errors.Join(err, waitForPort(port))
	}
	if err != nil {
		log, _ := os.ReadFile(h.Log) // Postfix says there why it does not start
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, h.Stop()), log)
	}
	return h, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (h *Host) path(elem ...string) string { return filepath.Join(append([]string{h.dir}, elem...)...) }

// configure creates the directories and the configuration of both servers.
func (h *Host) configure() error {
	if err := os.RemoveAll(h.dir); err != nil {
		return err
	}
	for _, d := range []string{"etc", "spool", "lib", "log", "run", "mail"} {
		if err := os.MkdirAll(h.path(d), 0o755); err != nil { //nolint:gosec // the servers run as other users
			return err
		}
	}
	pages, err := template.ParseFS(etc, "etc/*")
	if err != nil {
		return err
	}
	for _, page := range pages.Templates() {
		var text bytes.Buffer
		if err := page.Execute(&text, map[string]any{"Dir": h.dir, "Host": h, "LMTPPort": h.lmtpPort, "Domain": Domain}); err != nil {
			return err
		}
		if err := os.WriteFile(h.path("etc", page.Name()), text.Bytes(), 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return errors.Join(run("chown", "mail:mail", h.path("mail")), run("chown", "postfix", h.path("lib")))
}

func waitForPort(port int) error {
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
func (h *Host) Stop() error {
	if _, err := os.Stat(h.path("etc", "dovecot.conf")); err != nil {
		return nil // they were never configured
	}
	err := run("postfix", "-c", h.path("etc"), "stop")
	if _, noDovecot := os.Stat(h.path("run", "master.pid")); noDovecot == nil {
		err = errors.Join(err, run("doveadm", "-c", h.path("etc", "dovecot.conf"), "stop"))
	}
	return err
}

// Flush makes Postfix retry everything in its queue.
func (h *Host) Flush() error { return run("postqueue", "-c", h.path("etc"), "-f") }

// Queued lists the messages that Postfix has accepted and not yet delivered, and
// why not, one JSON object each.
func (h *Host) Queued() (messages []string, err error) {
	out, err := exec.Command("postqueue", "-c", h.path("etc"), "-j").Output() //nolint:gosec // our own directory
	if err != nil {
		return nil, fmt.Errorf("list the queue: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// run runs a command. Its output goes to a file: a daemon that it starts would
// keep a pipe open.
func run(name string, args ...string) error {
	out, err := os.CreateTemp("", "mailhost-")
	if err != nil {
		return err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd := exec.Command(name, args...) //nolint:gosec // the commands are those of this package
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		output, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(output))
	}
	return nil
}
