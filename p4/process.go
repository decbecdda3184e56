package p4

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// An ending is how a process ended and what it left.
type ending struct {
	tally
	exit    int // -1 if it did not start or was killed
	exitErr error
	readErr error // of its output, or what each said of a record
	stderr  string
}

// execute runs one process to its end. stop ends ctx.
func (r runner) execute(ctx context.Context, stop func(), c command, args []string, each func(record) error) ending {
	output, input := io.Pipe()
	stderr := &head{room: 8 << 10}
	cmd := exec.CommandContext(ctx, r.path, args...) //nolint:gosec // resolved once by New; argv refuses operands that look like options
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.environ(), input, stderr
	if c.lines != nil {
		cmd.Stdin = strings.NewReader(strings.Join(c.lines, "\n") + "\n")
	}
	stopAsGroup(cmd, r.grace)

	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		_ = input.Close()
		ended <- err
	}()
	e := ending{tally: tally{r: output, limit: r.maxOutput}, exit: -1}
	if e.readErr = e.read(each); e.readErr != nil {
		stop()
		_ = output.CloseWithError(e.readErr)
	}
	e.exitErr = <-ended
	if ctx.Err() != nil || errors.Is(e.exitErr, exec.ErrWaitDelay) {
		killGroup(cmd)
	}
	if cmd.ProcessState != nil {
		e.exit = cmd.ProcessState.ExitCode()
	}
	e.stderr = string(stderr.kept)
	return e
}

// err says what the end of a command means that was neither stopped nor a success.
func (e ending) err(name string) error {
	if _, ok := errors.AsType[*failure.Error](e.readErr); ok {
		return e.readErr
	}
	if errors.Is(e.readErr, errOutputLimit) || errors.Is(e.readErr, errTooManyFields) {
		return failure.Errorf(failure.TooLarge, "p4 %s: %w: there is too much of it to review", name, e.readErr)
	}
	// Failures to connect have no record, in no output mode.
	if m, ok := meaningOf(e.stderr); ok {
		return m.err(0, 0)
	}
	switch {
	case e.readErr != nil:
		return failure.Errorf(failure.UpstreamInternal, "read what p4 %s printed: %w", name, e.readErr)
	case errors.Is(e.exitErr, syscall.EAGAIN), errors.Is(e.exitErr, syscall.ENOMEM):
		return failure.Errorf(failure.ServerBusy, "start p4 %s: %w", name, e.exitErr)
	case errors.Is(e.exitErr, exec.ErrWaitDelay):
		return failure.Errorf(failure.UpstreamInternal, "p4 %s left a process behind: %w", name, e.exitErr)
	}
	exit, ok := errors.AsType[*exec.ExitError](e.exitErr)
	switch {
	case !ok:
		// The system's error is of the command also where the directory is at fault.
		return failure.Errorf(failure.ConfigInvalid, "start p4 %s: %w: correct p4.command, or give p4.state_dir to the user of the workers", name, e.exitErr)
	case e.severe > 0 && exit.Exited():
		return nil
	}
	return failure.Errorf(failure.UpstreamInternal, "p4 %s ended with %w and no message", name, exit)
}

// stopAsGroup makes the process the leader of a group and has the whole group
// told to stop when the context ends. exec kills the leader after the grace.
func stopAsGroup(cmd *exec.Cmd, grace time.Duration) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
}

// killGroup ends what is left of the group: children that ignored the request
// to stop, or that outlived their parent. The leader has just been reaped, but
// its number stays the group's for as long as that has a member.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// A tally reads records and counts them.
type tally struct {
	r       io.Reader
	limit   int64
	bytes   int64
	records int
	severe  int
}

func (t *tally) read(each func(record) error) error {
	d := decoder{bufio.NewReaderSize(t, 64<<10)}
	for {
		rec, err := d.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.records++
		if rec.severity() >= 3 {
			t.severe++
		}
		if err := each(rec); err != nil {
			return err
		}
	}
}

// Read counts, and fails at the limit.
func (t *tally) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.bytes += int64(n)
	if t.bytes > t.limit {
		return 0, fmt.Errorf("%w of %d bytes", errOutputLimit, t.limit)
	}
	return n, err
}

// A head keeps the first bytes written to it and lets the others go.
type head struct {
	kept []byte
	room int
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.room-len(h.kept))
	h.kept = append(h.kept, p[:n]...)
	return len(p), nil
}
