package p4

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A command is one run of p4.
type command struct {
	name  string
	flags []string // constants of this package
	// operands come from outside. Each is one argument; none may begin with a dash,
	// because p4 has no argument that ends its options.
	operands []string
	// lines are operands passed on the standard input: a changelist may have more
	// paths than the 10,000 or so that a command line holds.
	lines []string
}

// argv returns the argument vector. Each operand is one token, and one that p4
// would read as an option or as two arguments is refused (security 9.2.3).
func (c command) argv() ([]string, error) {
	for _, list := range [][]string{c.operands, c.lines} {
		for _, operand := range list {
			if operand == "" || operand[0] == '-' || strings.ContainsAny(operand, "\x00\r\n") {
				return nil, failure.Errorf(failure.InvariantViolated,
					"run p4 %s: an operand is empty, begins with a dash or has a line end", c.name)
			}
		}
	}
	args := []string{"-G", "-zprog=criticizer"}
	if c.lines != nil {
		args = append(args, "-x", "-")
	}
	args = append(append(args, c.name), c.flags...)
	return append(args, c.operands...), nil
}

// A runner runs p4 without a shell, in an environment of its own, with a timeout
// and a limit on its output.
type runner struct {
	lg        *slog.Logger
	path      string // absolute
	dir       string // p4's HOME and working directory
	port      string
	user      string
	charset   string
	broker    bool // an unknown message may be the broker's
	ticket    secret.Value
	timeout   time.Duration
	grace     time.Duration
	maxOutput int64
}

// environ is the whole environment of a p4 process. Nothing is inherited: P4CONFIG
// files, ~/.p4enviro and aliases can change the user, the server or the command,
// and P4LANGUAGE the text of the messages. The ticket is passed here because other
// users of the machine can read an argument vector.
func (r runner) environ() []string {
	in := func(name string) string { return filepath.Join(r.dir, name) }
	env := []string{
		"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + r.dir, "PWD=" + r.dir,
		"P4PORT=" + r.port, "P4USER=" + r.user, "P4CHARSET=" + r.charset,
		"P4CLIENT=criticizer-has-no-workspace", "P4CLIENTPATH=" + r.dir, "P4CONFIG=",
		"P4ENVIRO=" + in("p4enviro"), "P4ALIASES=" + in("no-aliases"),
		"P4TICKETS=" + in("p4tickets"), "P4TRUST=" + in("p4trust"),
	}
	if r.ticket.IsSet() {
		env = append(env, "P4PASSWD="+r.ticket.Reveal())
	}
	return env
}

var (
	errTimedOut    = errors.New("timed out")
	errOutputLimit = errors.New("output is over the limit")
)

// run runs c and calls each for every record. An error of each stops the command
// and is returned. If each returns nil for an error record of severity 3 or more,
// the record counts as handled, and so does the exit status that it causes.
//
// The log holds counts, and no argument (security 9.2.4).
func (r runner) run(parent context.Context, c command, each func(record) error) error {
	args, err := c.argv()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(parent, r.timeout, errTimedOut)
	defer stop()
	start := time.Now()
	e := r.execute(ctx, stop, c, args, each)
	r.lg.LogAttrs(parent, slog.LevelInfo, "p4 command ended", slog.String("command", c.name),
		slog.Int("operands", len(c.operands)+len(c.lines)), slog.Int("records", e.records),
		slog.Int64("bytes", e.bytes), slog.Int("exit", e.status), slog.Int64("duration_ms", time.Since(start).Milliseconds()))
	switch {
	case e.readErr == nil && e.exitErr == nil:
		return nil
	case parent.Err() != nil:
		return fmt.Errorf("run p4 %s: %w", c.name, parent.Err())
	case errors.Is(context.Cause(ctx), errTimedOut):
		return failure.Errorf(failure.NetworkTimeout,
			"p4 %s timed out after %s: check that the server answers, or raise the timeout", c.name, r.timeout)
	}
	err = e.err(c.name)
	if r.broker && failure.ClassOf(err) == failure.Unknown {
		err = failure.Errorf(failure.UpstreamUnavailable, "the broker before the server refused p4 %s: see the rules of its configuration", c.name)
	}
	return err
}
