package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A gitSource makes a depot of a git repository: the first-parent history of
// HEAD, oldest first, is changes 1 to n.
type gitSource struct {
	dir string
	// The process that reads contents by object name; nil before the first.
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// command prepares git without the user's configuration.
func (g *gitSource) command(args ...string) *exec.Cmd {
	args = append([]string{"-C", g.dir, "-c", "safe.directory=*"}, args...)
	cmd := exec.Command("git", args...) //nolint:gosec // the arguments are constants; the directory comes from the settings
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0",
	}
	return cmd
}

// state is the commit of HEAD.
func (g *gitSource) state() (string, error) {
	text, err := g.command("rev-parse", "--verify", "HEAD^{commit}").Output()
	if err != nil {
		return "", g.explain("rev-parse", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (g *gitSource) explain(name string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("git %s in %s: %w: %s", name, g.dir, err, bytes.TrimSpace(exit.Stderr))
	}
	return fmt.Errorf("git %s in %s: %w", name, g.dir, err)
}

// load reads the history. A repository can have tens of thousands of commits and every
// command is a process, so load keeps what it has read in dir until HEAD moves.
func (g *gitSource) load(dir string) (*history, error) {
	state, err := g.state()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(g.dir))
	name := filepath.Join(dir, fmt.Sprintf("git-%s-%x", filepath.Base(g.dir), sum[:6]))
	if h, ok := readSnapshot(name, state); ok {
		return h, nil
	}
	h, err := g.history()
	if err != nil {
		return nil, err
	}
	return h, h.writeSnapshot(name, state)
}

// A snapshot is the history of a state of a repository.
type snapshot struct {
	State   string
	Changes []*change
	Users   map[string]user
}

// readSnapshot returns false if there is none of the state.
func readSnapshot(name, state string) (*history, bool) {
	file, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer func() { _ = file.Close() }()
	var read snapshot
	if err := gob.NewDecoder(bufio.NewReaderSize(file, 1<<16)).Decode(&read); err != nil || read.State != state {
		return nil, false
	}
	h := newHistory()
	h.changes, h.users = read.Changes, read.Users
	for _, c := range h.changes {
		for _, r := range c.Files {
			h.files[r.Path] = append(h.files[r.Path], r)
		}
	}
	return h, true
}

// writeSnapshot replaces the snapshot in one step: other processes may read it, or write the same.
func (h *history) writeSnapshot(name, state string) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	err = errors.Join(gob.NewEncoder(file).Encode(snapshot{state, h.changes, h.users}), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

func (g *gitSource) history() (*history, error) {
	log, err := g.command("log", "--first-parent", "--diff-merges=first-parent", "--root", "--reverse", "--raw", "-z",
		"-M", "-l400", "--no-abbrev", "--no-show-signature", "--encoding=UTF-8",
		"--format=%H%x00%ae%x00%an%x00%ct%x00%B%x00", "HEAD").Output()
	if err != nil {
		return nil, g.explain("log", err)
	}
	h := newHistory()
	for fields := strings.Split(string(log), "\x00"); len(fields) > 1; {
		var c commit
		if c, fields, err = parseCommit(fields); err != nil {
			return nil, fmt.Errorf("read git log: %w", err)
		}
		h.addCommit(c)
	}
	return h, nil
}

func (g *gitSource) start() error {
	cmd := g.command("cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	g.cmd, g.in, g.out = cmd, in, bufio.NewReaderSize(out, 1<<16)
	return cmd.Start()
}

func (g *gitSource) content(key string) ([]byte, error) {
	content, err := g.ask(key)
	if err != nil {
		return nil, g.explain("cat-file", err)
	}
	return content, nil
}

func (g *gitSource) ask(key string) ([]byte, error) {
	if g.cmd == nil {
		if err := g.start(); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(g.in, key+"\n"); err != nil {
		return nil, err
	}
	header, err := g.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var name, kind string
	var size int
	if _, err := fmt.Sscan(header, &name, &kind, &size); err != nil {
		return nil, errors.New(strings.TrimSpace(header))
	}
	content := make([]byte, size+1) // with the line feed after it
	_, err = io.ReadFull(g.out, content)
	return content[:size], err
}

// close ends the process; g may be nil.
func (g *gitSource) close() error {
	if g == nil || g.cmd == nil {
		return nil
	}
	return errors.Join(g.in.Close(), g.cmd.Wait())
}
