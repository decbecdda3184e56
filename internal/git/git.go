// Package git reads git repositories that somebody else may have written. The
// configuration of such a repository can name programs to run, and servers to ask for what
// is missing. git never reads it: it works in an empty repository of its own, on the
// objects and refs of the other one. No other package starts git.
package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Repository is one git repository. It is not safe for concurrent use.
type Repository struct {
	dir     string // as the caller named it
	own     string // the empty repository
	objects string
	// The process that reads objects by name; nil before the first.
	cat *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Open opens the repository of a directory, which may be a worktree or a directory in one.
// Close removes what it makes.
func Open(dir string) (r *Repository, err error) {
	head, common, err := find(dir)
	if err != nil {
		return nil, fmt.Errorf("open git repository %s: %w", dir, err)
	}
	r = &Repository{dir: dir, objects: filepath.Join(common, "objects")}
	if r.own, err = os.MkdirTemp("", "git-"); err != nil {
		return nil, fmt.Errorf("open git repository %s: %w", dir, err)
	}
	err = errors.Join(os.Mkdir(filepath.Join(r.own, "objects"), 0o700), os.Symlink(filepath.Join(common, "refs"), filepath.Join(r.own, "refs")))
	for name, from := range map[string]string{"HEAD": head, "packed-refs": common, "shallow": common} {
		text, readErr := os.ReadFile(filepath.Join(from, name))
		if readErr == nil {
			err = errors.Join(err, os.WriteFile(filepath.Join(r.own, name), text, 0o600)) //nolint:gosec // the name is one of ours
		} else if name == "HEAD" {
			err = errors.Join(err, readErr)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open git repository %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// find returns the directories with the HEAD of dir, and with its objects and refs.
func find(dir string) (head, common string, err error) {
	dir, err = filepath.Abs(dir)
	for ; err == nil; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if pointer, err := os.ReadFile(git); err == nil { // a linked worktree, or a submodule
			git = relativeTo(dir, strings.TrimPrefix(string(pointer), "gitdir:"))
		} else if _, err := os.Stat(git); err != nil {
			git = dir // a bare repository, if it has a HEAD
		}
		if _, err := os.Stat(filepath.Join(git, "HEAD")); err == nil { //nolint:gosec // the caller names the repository
			if pointer, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil { //nolint:gosec // as above
				return git, relativeTo(git, string(pointer)), nil
			}
			return git, git, nil
		}
		if dir == filepath.Dir(dir) {
			return "", "", errors.New("it is not a git repository")
		}
	}
	return "", "", err
}

func relativeTo(dir, path string) string {
	if path = strings.TrimSpace(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // without a shell
	cmd.Dir = r.own
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + r.own, "GIT_DIR=" + r.own, "GIT_OBJECT_DIRECTORY=" + r.objects,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1",
	}
	return cmd
}

// Output runs git and returns what it prints.
func (r *Repository) Output(ctx context.Context, args ...string) (string, error) {
	out, err := r.command(ctx, args...).Output()
	return string(out), r.explain(args[0], err)
}

func (r *Repository) explain(name string, err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("git %s in %s: %w: %s", name, r.dir, err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return fmt.Errorf("git %s in %s: %w", name, r.dir, err)
	}
	return nil
}

// ErrTooLarge is the error of an object that has more bytes than the limit.
var ErrTooLarge = errors.New("the object is too large")

// Blob returns the content that an object holds, of at most limit bytes.
func (r *Repository) Blob(id string, limit int) ([]byte, error) {
	content, err := r.ask(id, limit)
	return content, r.explain("cat-file", err)
}

func (r *Repository) ask(id string, limit int) ([]byte, error) {
	if r.cat == nil {
		cmd := r.command(context.Background(), "cat-file", "--batch")
		in, errIn := cmd.StdinPipe()
		out, errOut := cmd.StdoutPipe()
		if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
			return nil, err
		}
		r.cat, r.in, r.out = cmd, in, bufio.NewReaderSize(out, 1<<16)
	}
	if _, err := io.WriteString(r.in, id+"\n"); err != nil {
		return nil, err
	}
	header, err := r.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var name, kind string
	var size int
	if _, err := fmt.Sscan(header, &name, &kind, &size); err != nil {
		return nil, errors.New(strings.TrimSpace(header))
	}
	if size > limit {
		_, err = r.out.Discard(size + 1)
		return nil, errors.Join(ErrTooLarge, err)
	}
	content := make([]byte, size+1) // with the line feed after it
	_, err = io.ReadFull(r.out, content)
	return content[:size], err
}

// Close ends the process and removes the empty repository.
func (r *Repository) Close() error {
	var err error
	if r.cat != nil {
		err = errors.Join(r.in.Close(), r.cat.Wait())
	}
	return errors.Join(err, os.RemoveAll(r.own))
}
