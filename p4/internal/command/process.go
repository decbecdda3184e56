package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"github.com/criticizer/criticizer/internal/failure"
)

// A result is how a process ended.
type result struct {
	boundedReader
	records int
	severe  int   // records of severity 3 or more
	status  int   // exit status; -1 if it did not start or was killed
	exitErr error // of starting the process or waiting for it
	readErr error // of its output, or of the function that got a record
	stderr  string
}

// execute runs one process to its end. stop ends ctx.
func (r Runner) execute(ctx context.Context, stop func(), c Cmd, args []string, each func(Record) error) result {
	output, input := io.Pipe()
	stderr := &limitedBuffer{limit: 8 << 10}
	cmd := exec.CommandContext(ctx, r.Path, args...) //nolint:gosec // resolved once by New; Args refuses operands that look like options
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.Dir, r.Environ(), input, stderr
	if c.Lines != nil {
		cmd.Stdin = strings.NewReader(strings.Join(c.Lines, "\n") + "\n")
	}
	stopAsGroup(cmd, r.Grace)

	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		_ = input.Close()
		ended <- err
	}()
	e := result{boundedReader: boundedReader{r: output, limit: r.MaxOutput, begin: limitedBuffer{limit: 1 << 10}}, status: -1}
	e.readErr = Decode(&e.boundedReader, func(rec Record) error {
		e.records++
		if rec.Severity() >= 3 {
			e.severe++
		}
		return each(rec)
	})
	if e.readErr != nil {
		stop()
		_ = output.CloseWithError(e.readErr)
	}
	e.exitErr = <-ended
	if ctx.Err() != nil || errors.Is(e.exitErr, exec.ErrWaitDelay) {
		killGroup(cmd)
	}
	if cmd.ProcessState != nil {
		e.status = cmd.ProcessState.ExitCode()
	}
	e.stderr = string(stderr.kept)
	return e
}

// err classifies the end of a command that was neither stopped nor successful.
func (e result) err(name string) error {
	if _, ok := errors.AsType[*failure.Error](e.readErr); ok {
		return e.readErr
	}
	if errors.Is(e.readErr, ErrOutputLimit) || errors.Is(e.readErr, errTooManyFields) {
		return failure.Errorf(failure.TooLarge, "p4 %s: %w: the changelist is too large to review", name, e.readErr)
	}
	// p4 reports failures to connect, and wrong settings, as text without a record.
	text := e.stderr
	if errors.Is(e.readErr, errNotMarshalled) {
		text += "\n" + string(e.begin.kept)
	}
	if m, ok := classify(text, ""); ok {
		return m.err(text)
	}
	switch {
	case strings.TrimSpace(text) != "" && e.severe == 0:
		return failure.Errorf(failure.UpstreamInternal, "p4 %s failed: %s", name, scrub(text))
	case e.readErr != nil:
		return failure.Errorf(failure.UpstreamInternal, "read the output of p4 %s: %w", name, e.readErr)
	case errors.Is(e.exitErr, syscall.EAGAIN), errors.Is(e.exitErr, syscall.ENOMEM):
		return failure.Errorf(failure.ServerBusy, "start p4 %s: %w", name, e.exitErr)
	case errors.Is(e.exitErr, exec.ErrWaitDelay):
		return failure.Errorf(failure.UpstreamInternal, "p4 %s left a process behind: %w", name, e.exitErr)
	}
	exit, ok := errors.AsType[*exec.ExitError](e.exitErr)
	switch {
	case !ok:
		// The system reports a missing or closed working directory as an error of the command.
		return failure.Errorf(failure.ConfigInvalid, "start p4 %s: %w: correct p4.command, or give p4.state_dir to the user of the workers", name, e.exitErr)
	case e.severe > 0 && exit.Exited():
		return nil
	}
	return failure.Errorf(failure.UpstreamInternal, "p4 %s ended with %w and no message", name, exit)
}

// A boundedReader fails after limit bytes. It counts them and keeps the first.
type boundedReader struct {
	r     io.Reader
	limit int64
	bytes int64
	begin limitedBuffer
}

// Read implements io.Reader.
func (t *boundedReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.bytes += int64(n)
	_, _ = t.begin.Write(p[:n])
	if t.bytes > t.limit {
		return 0, fmt.Errorf("%w of %d bytes", ErrOutputLimit, t.limit)
	}
	return n, err
}

// A limitedBuffer keeps the first bytes written to it and drops the others.
type limitedBuffer struct {
	kept  []byte
	limit int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.limit-len(b.kept))
	b.kept = append(b.kept, p[:n]...)
	return len(p), nil
}
