package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// A gitSource makes a depot of a git repository: the first-parent history of
// HEAD, oldest first, is changes 1 to n.
type gitSource struct{ dir string }

// command prepares git without the user's configuration.
func (g gitSource) command(args ...string) *exec.Cmd {
	args = append([]string{"-C", g.dir, "-c", "safe.directory=*"}, args...)
	cmd := exec.Command("git", args...) //nolint:gosec // the arguments are constants; the directory comes from the settings
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0",
	}
	return cmd
}

func (g gitSource) output(args ...string) (string, error) {
	text, err := g.command(args...).Output()
	if err != nil {
		return "", g.explain(args[0], err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (g gitSource) explain(name string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("git %s in %s: %w: %s", name, g.dir, err, bytes.TrimSpace(exit.Stderr))
	}
	return fmt.Errorf("git %s in %s: %w", name, g.dir, err)
}

// state is the commit of HEAD.
func (g gitSource) state() (string, error) { return g.output("rev-parse", "--verify", "HEAD^{commit}") }

// feed adds all commits.
func (g gitSource) feed(b *builder) error {
	count, err := g.output("rev-list", "--first-parent", "--count", "HEAD")
	if err != nil {
		return err
	}
	total, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("count commits: %w", err)
	}
	return g.readLog(func(c commit) error {
		b.progress(b.lastChange()+1, total)
		return b.addCommit(c)
	})
}

// readLog visits commits, oldest first.
func (g gitSource) readLog(visit func(commit) error) error {
	cmd := g.command("log", "--first-parent", "--diff-merges=first-parent", "--root", "--reverse", "--raw", "-z",
		"-M", "-l400", "--no-abbrev", "--no-show-signature", "--encoding=UTF-8",
		"--format=%H%x00%ae%x00%an%x00%ct%x00%B%x00", "HEAD")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return g.explain("log", err)
	}
	if err := cmd.Start(); err != nil {
		return g.explain("log", err)
	}
	err = parseLog(bufio.NewReaderSize(pipe, 1<<20), visit)
	if err != nil {
		// The error of the visitor is returned; that of the killed git is its consequence.
		_ = cmd.Process.Kill()
	}
	if wait := cmd.Wait(); wait != nil && err == nil {
		err = fmt.Errorf("git log in %s: %w: %s", g.dir, wait, bytes.TrimSpace(stderr.Bytes()))
	}
	return err
}

func (g gitSource) contents(*bbolt.Tx) contents { return &blobs{source: g} }

// blobs reads contents by object name, through one git process.
type blobs struct {
	source gitSource
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

func (o *blobs) start() error {
	cmd := o.source.command("cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return o.source.explain("cat-file", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return o.source.explain("cat-file", err)
	}
	if err := cmd.Start(); err != nil {
		return o.source.explain("cat-file", err)
	}
	o.cmd, o.in, o.out = cmd, in, bufio.NewReaderSize(out, 1<<16)
	return nil
}

func (o *blobs) read(key string) ([]byte, error) {
	if o.cmd == nil {
		if err := o.start(); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(o.in, key+"\n"); err != nil {
		return nil, o.source.explain("cat-file", err)
	}
	header, err := o.out.ReadString('\n')
	if err != nil {
		return nil, o.source.explain("cat-file", err)
	}
	words := strings.Fields(header)
	if len(words) != 3 {
		return nil, fmt.Errorf("git cat-file in %s: %s", o.source.dir, strings.TrimSpace(header))
	}
	size, err := strconv.Atoi(words[2])
	if err != nil {
		return nil, fmt.Errorf("git cat-file in %s: %w", o.source.dir, err)
	}
	content := make([]byte, size+1) // with the line feed after it
	if _, err := io.ReadFull(o.out, content); err != nil {
		return nil, o.source.explain("cat-file", err)
	}
	return content[:size], nil
}

func (o *blobs) close() error {
	if o.cmd == nil {
		return nil
	}
	if err := o.in.Close(); err != nil {
		return o.source.explain("cat-file", err)
	}
	return o.cmd.Wait()
}
