// Package mailhost runs a real Postfix and a real Dovecot on loopback, for the
// tests that must not trust a stand-in. Postfix takes mail for the domain
// corp.test and no other, hands it to Dovecot, keeps a copy of everything from
// criticizer for the account journal, and never talks to a host but this one.
//
// It needs root and Debian; see [Install].
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

// Domain is where all mailboxes are. These exist, with any digits behind them:
// author, reader, criticizer, and journal, which gets what the criticizer of the
// same digits sends. Mail to ghost, with any digits, is accepted and bounces;
// full, policy and grey are refused with 452, 554 and 450.
const Domain = "corp.test"

// A Host is a running mail server.
type Host struct {
	// SMTPPort and IMAPPort take clear text, on 127.0.0.1.
	SMTPPort, IMAPPort int
	// Password opens every mailbox by IMAP; the account's name is the local
	// part of the address.
	Password string
	// Log is the file Postfix logs to.
	Log string
	// Delivery is what Postfix reaches Dovecot through. What is for an account
	// that is held there waits in the queue.
	Delivery *Relay

	dir      string
	lmtpPort int // Dovecot's
	ghost    *ghost
}

// Start runs the servers in dir, which is emptied.
func Start(dir string) (*Host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	h := &Host{dir: dir, Log: filepath.Join(dir, "log", "postfix.log"), Password: rand.Text()}
	if err := h.listen(); err != nil {
		return nil, err
	}
	if err := h.write(); err != nil {
		h.closeListeners()
		return nil, fmt.Errorf("configure mail host: %w", err)
	}
	if err := h.startServers(); err != nil {
		return nil, errors.Join(err, h.Stop())
	}
	return h, nil
}

// listen opens what this process itself serves and chooses the other ports.
func (h *Host) listen() (err error) {
	var ports [3]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return err
		}
	}
	h.SMTPPort, h.IMAPPort, h.lmtpPort = ports[0], ports[1], ports[2]
	if h.Delivery, err = openRelay(fmt.Sprintf("127.0.0.1:%d", h.lmtpPort)); err != nil {
		return err
	}
	if h.ghost, err = haunt(); err != nil {
		_ = h.Delivery.close()
	}
	return err
}

func (h *Host) closeListeners() {
	_ = h.Delivery.close()
	_ = h.ghost.Close()
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

// write makes the directories and the configuration of both servers.
func (h *Host) write() error {
	if err := os.RemoveAll(h.dir); err != nil {
		return err
	}
	for _, d := range []string{"etc", "spool", "lib", "log", "run", "mail"} {
		if err := os.MkdirAll(h.path(d), 0o755); err != nil { //nolint:gosec // the servers' own users must get in
			return err
		}
	}
	pages, err := template.ParseFS(etc, "etc/*")
	if err != nil {
		return err
	}
	for _, page := range pages.Templates() {
		var text bytes.Buffer
		if err := page.Execute(&text, map[string]any{"Dir": h.dir, "Host": h, "LMTPPort": h.lmtpPort, "GhostPort": h.ghost.port, "Domain": Domain}); err != nil {
			return err
		}
		if err := os.WriteFile(h.path("etc", page.Name()), text.Bytes(), 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return errors.Join(run("chown", "mail:mail", h.path("mail")), run("chown", "postfix", h.path("lib")))
}

// startServers starts both servers and waits until they answer.
func (h *Host) startServers() error {
	if err := run("dovecot", "-c", h.path("etc", "dovecot.conf")); err != nil {
		return err
	}
	if err := run("postfix", "-c", h.path("etc"), "start"); err != nil {
		return err
	}
	for _, port := range []int{h.SMTPPort, h.IMAPPort, h.lmtpPort} {
		if err := answers(port); err != nil {
			return err
		}
	}
	return nil
}

func answers(port int) error {
	const patience = time.Minute
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("start mail host: port %d does not answer after %s: %w", port, patience, err)
		}
	}
}

// Stop stops everything and leaves the directory to be looked at.
func (h *Host) Stop() error {
	h.closeListeners()
	return h.stopServers()
}

func (h *Host) stopServers() error {
	if _, err := os.Stat(h.path("etc", "dovecot.conf")); err != nil {
		return nil // it was never configured
	}
	postfix := run("postfix", "-c", h.path("etc"), "stop")
	if _, err := os.Stat(h.path("run", "master.pid")); err == nil {
		if err := run("doveadm", "-c", h.path("etc", "dovecot.conf"), "stop"); err != nil {
			return err
		}
	}
	return postfix
}

// Flush has Postfix try everything in its queue again.
func (h *Host) Flush() error { return run("postqueue", "-c", h.path("etc"), "-f") }

// Queued lists the messages Postfix has accepted and not yet delivered, and why
// not, as postqueue does.
func (h *Host) Queued() (messages []string, err error) {
	out, err := exec.Command("postqueue", "-c", h.path("etc"), "-j").Output() //nolint:gosec // our own directory
	if err != nil {
		return nil, fmt.Errorf("look into the queue: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")[:strings.Count(string(out), "\n")], nil
}

// run runs a command. Its output goes through a file: a daemon that it leaves
// behind would keep a pipe open.
func run(name string, args ...string) error {
	out, err := os.CreateTemp("", "mailhost-")
	if err != nil {
		return err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd := exec.Command(name, args...) //nolint:gosec // the commands are written above
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(said))
	}
	return nil
}
