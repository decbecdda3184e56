// Package command runs p4 and reads its output.
//
// command.go has the command line and the environment of a process, process.go starts
// it and ends it, marshal.go reads the records that it prints, and messages.go
// classifies its messages by the table messages.txt.
//
// The exit status of p4 does not tell success from failure: a missing file, or one
// that the account may not read, ends with status 0. A command has succeeded if it
// exited with 0, no record is an error, and the requested records arrived.
package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A Cmd is one command of p4.
type Cmd struct {
	Name  string
	Flags []string // constants of the caller
	// Operands come from outside. Each is one argument; none may begin with a dash,
	// because p4 has no argument that ends its options.
	Operands []string
	// Lines are operands passed on the standard input: a changelist may have more
	// paths than the 10,000 or so that a command line holds.
	Lines []string
}

// Args returns the argument vector. Each operand is one token, and one that p4
// would read as an option or as two arguments is refused (security 9.2.3).
func (c Cmd) Args() ([]string, error) {
	for _, list := range [][]string{c.Operands, c.Lines} {
		for _, operand := range list {
			if operand == "" || operand[0] == '-' || strings.ContainsAny(operand, "\x00\r\n") {
				return nil, failure.Errorf(failure.InvariantViolated,
					"run p4 %s: an operand is empty, begins with a dash or has a line end", c.Name)
			}
		}
	}
	args := []string{"-G", "-zprog=criticizer"}
	if c.Lines != nil {
		args = append(args, "-x", "-")
	}
	args = append(append(args, c.Name), c.Flags...)
	return append(args, c.Operands...), nil
}

// A Runner runs p4 without a shell, in an environment of its own, with a timeout
// and a limit on its output.
type Runner struct {
	Log       *slog.Logger
	Path      string // absolute; see [LookPath]
	Dir       string // p4's HOME and working directory; see [MakeDir]
	Port      string
	User      string
	Charset   string
	Broker    bool // an unknown message may be the broker's
	Ticket    secret.Value
	Key       string // fingerprint of the only key that is trusted; empty for those in p4trust
	Timeout   time.Duration
	Grace     time.Duration // between SIGTERM and SIGKILL
	MaxOutput int64         // bytes of one command
}

// LookPath resolves the name of a command to an absolute path, once: a later change of
// PATH or of the working directory does not change the command (security 9.2.3).
func LookPath(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", fmt.Errorf("command %q is a relative path: give an absolute one or a bare name", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the p4 command: %w: install it, or give its path", err)
	}
	return filepath.Abs(path)
}

// MakeDir makes the private directory of p4, and refuses one that other users can enter.
func MakeDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("state directory %q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the state directory of p4: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("read the state directory of p4: %w", err)
	}
	if secret.Exposed(info, 0o077) {
		return fmt.Errorf("the state directory of p4, %s, is open to other users: chmod 700 it", dir)
	}
	for _, name := range []string{"p4tickets", "p4trust"} { // p4 fails with a message about its connection
		file, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("read the file %s of p4: %w: it or its directory belongs to another user: chown both to the user of the workers", name, err)
		}
		if err == nil {
			_ = file.Close()
		}
	}
	return nil
}

// Environ returns the whole environment of a p4 process. Nothing is inherited: P4CONFIG
// files, ~/.p4enviro and aliases can change the user, the server or the command,
// and P4LANGUAGE the text of the messages. The ticket is passed here because other
// users of the machine can read an argument vector.
func (r Runner) Environ() []string {
	in := func(name string) string { return filepath.Join(r.Dir, name) }
	trust := in("p4trust")
	if r.Key != "" {
		trust = in(r.trustFile())
	}
	env := []string{
		"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + r.Dir, "PWD=" + r.Dir,
		"P4PORT=" + r.Port, "P4USER=" + r.User, "P4CHARSET=" + r.Charset,
		"P4CLIENT=criticizer-has-no-workspace", "P4CLIENTPATH=" + r.Dir, "P4CONFIG=",
		"P4ENVIRO=" + in("p4enviro"), "P4ALIASES=" + in("no-aliases"),
		"P4TICKETS=" + in("p4tickets"), "P4TRUST=" + trust,
	}
	if r.Ticket.IsSet() {
		env = append(env, "P4PASSWD="+r.Ticket.Reveal())
	}
	return env
}

// trustFile holds the trusted key alone, by address as p4 wants it.
func (r Runner) trustFile() string { return "p4trust-" + strings.ReplaceAll(r.Key, ":", "") }

// trust adds the address to those at which the key of the configuration is trusted.
func (r Runner) trust(address string) error {
	file, err := os.OpenFile(filepath.Join(r.Dir, r.trustFile()), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return failure.Errorf(failure.ConfigInvalid, "trust the server's key: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s=**++**:%s\n", address, r.Key)
	return errors.Join(err, file.Close())
}

// ErrOutputLimit is the error of a command that prints more than Runner.MaxOutput.
var ErrOutputLimit = errors.New("output is over the limit")

var errTimedOut = errors.New("timed out")

// Run runs c and calls each for every record. An error of each stops the command
// and is returned. If each returns nil for an error record of severity 3 or more,
// the record counts as handled, and so does the exit status that it causes.
//
// At an address where p4 has not seen the key of the configuration, Run trusts the key and
// runs c again: the name of a server may lead to several addresses.
//
// The log holds counts, and no argument (security 9.2.4).
func (r Runner) Run(ctx context.Context, c Cmd, each func(Record) error) error {
	err := r.run(ctx, c, each)
	wrong, isUntrusted := errors.AsType[untrustedKey](err)
	switch {
	case !isUntrusted:
		return err
	case r.Key == "":
		return failure.Errorf(failure.ConfigInvalid, "%w: its fingerprint is %s: compare it with p4d -Gf on the server's host, and set p4.fingerprint to it", wrong, wrong.key)
	case r.Key != wrong.key:
		return failure.Errorf(failure.ConfigInvalid, "the server's key is not that of p4.fingerprint: its fingerprint is %s, the configured one is %s: if the key was changed on purpose, set p4.fingerprint to the new one; otherwise somebody may intercept the connection", wrong.key, r.Key)
	}
	if err := r.trust(wrong.address); err != nil {
		return err
	}
	return r.run(ctx, c, each)
}

func (r Runner) run(parent context.Context, c Cmd, each func(Record) error) error {
	args, err := c.Args()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(parent, r.Timeout, errTimedOut)
	defer stop()
	start := time.Now()
	e := r.execute(ctx, stop, c, args, each)
	r.Log.LogAttrs(parent, slog.LevelInfo, "p4 command ended", slog.String("command", c.Name),
		slog.Int("operands", len(c.Operands)+len(c.Lines)), slog.Int("records", e.records),
		slog.Int64("bytes", e.bytes), slog.Int("exit", e.status), slog.Int64("duration_ms", time.Since(start).Milliseconds()))
	switch {
	case e.readErr == nil && e.exitErr == nil:
		return nil
	case parent.Err() != nil:
		return fmt.Errorf("run p4 %s: %w", c.Name, parent.Err())
	case errors.Is(context.Cause(ctx), errTimedOut):
		return failure.Errorf(failure.NetworkTimeout,
			"p4 %s timed out after %s: check that the server answers, or raise the timeout", c.Name, r.Timeout)
	}
	err = e.err(c.Name)
	if _, unknown := errors.AsType[unknownMessage](err); r.Broker && unknown {
		err = failure.Errorf(failure.UpstreamUnavailable, "the broker before the server refused p4 %s: see the rules of its configuration", c.Name)
	}
	return err
}

// Stats runs c and returns its stat records. Other records that are not failures
// are ignored: triggers and brokers add messages to the output of any command.
func (r Runner) Stats(ctx context.Context, c Cmd) ([]Record, error) {
	var stats []Record
	err := r.Run(ctx, c, func(rec Record) error {
		if rec.Code == "stat" {
			stats = append(stats, rec)
		}
		return rec.Err()
	})
	return stats, err
}
