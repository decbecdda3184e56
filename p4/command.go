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
	flags []string // ours, fixed in the source
	// operands come from outside. Each is one argument, and p4 has no sign
	// that ends its options, so none may look like one.
	operands []string
	// lines are operands too, passed on the standard input: a command line
	// holds some 10,000 paths, a change may have more.
	lines []string
}

// argv makes the argument vector, or refuses (security 9.2).
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

// A runner starts p4: without a shell, in an environment of its own, bounded in
// time and output (security 9.2).
type runner struct {
	lg        *slog.Logger
	path      string // absolute
	dir       string // p4's HOME and working directory
	port      string
	user      string
	charset   string
	ticket    secret.Value
	timeout   time.Duration
	grace     time.Duration
	maxOutput int64
}

// environ is the whole environment of a p4 process. Nothing is inherited:
// P4CONFIG files, ~/.p4enviro and aliases can each change the user, the server
// or the command itself, and P4LANGUAGE the messages we classify. The ticket
// goes here, for the argument vector is for everyone to see.
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

// run starts c and hands each record to each. What each returns ends the
// command and is returned. An error record of severity 3 or more that each let
// pass is taken as dealt with, and so is the exit status that goes with it.
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
		slog.Int64("bytes", e.bytes), slog.Int("exit", e.exit), slog.Int64("duration_ms", time.Since(start).Milliseconds()))
	switch {
	case e.readErr == nil && e.exitErr == nil:
		return nil
	case parent.Err() != nil:
		return fmt.Errorf("run p4 %s: %w", c.name, parent.Err())
	case errors.Is(context.Cause(ctx), errTimedOut):
		return failure.Errorf(failure.NetworkTimeout,
			"p4 %s timed out after %s: check that the server answers, or raise the timeout", c.name, r.timeout)
	}
	return e.err(c.name)
}
