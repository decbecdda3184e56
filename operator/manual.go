package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/cli/manual"
)

const helpUsage = `usage: criticizer help [COMMAND]

Prints what -h prints behind the command: what it does, its flags, examples.

examples:
  criticizer help
  criticizer help deadletter

Exit status: 0 done, 1 failed, 2 wrong usage.
`

const completionUsage = `usage: criticizer completion bash|zsh|fish [PROGRAM]

Prints the script that completes command lines of criticizer or, if one is
named, of PROGRAM: a file of worker or starter, which is run with -h.

examples:
  criticizer completion bash > /etc/bash_completion.d/criticizer
  criticizer completion zsh > "${fpath[1]}/_criticizer"
  criticizer completion fish > ~/.config/fish/completions/criticizer.fish
  criticizer completion bash /opt/criticizer/worker

Exit status: 0 done, 1 failed, 2 wrong usage.
`

const manUsage = `usage: criticizer man DIR [PROGRAM...]

Writes the pages for man of criticizer and its commands into a directory, and
those of the programs named: files of worker or starter, which are run with -h.
make man writes all into build/man.

examples:
  criticizer man /usr/local/share/man/man1
  criticizer man build/man build/bin/worker build/bin/criticizer-starter

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// help implements criticizer help.
func help(ctx context.Context, args []string, c console) error {
	flags := c.flags("help", helpUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	return c.run(ctx, append(flags.Args(), "-h"))
}

// completion implements criticizer completion.
func completion(ctx context.Context, args []string, c console) error {
	flags := c.flags("completion", completionUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() < 1 || flags.NArg() > 2 {
		return badUsage("completion wants bash, zsh or fish, and at most one program: got %d arguments", flags.NArg())
	}
	program, pages, err := "criticizer", []manual.Page(nil), error(nil)
	if file := flags.Arg(1); file == "" {
		pages, err = c.pages(ctx)
	} else {
		program = filepath.Base(file)
		pages, err = pagesOf(ctx, file)
	}
	if err != nil {
		return err
	}
	script, err := manual.Completion(flags.Arg(0), program, pages)
	if err != nil {
		return usageError{err}
	}
	fmt.Fprint(c.stdout, script)
	return nil
}

// manPages implements criticizer man.
func manPages(ctx context.Context, args []string, c console) error {
	flags := c.flags("man", manUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return badUsage("man wants the directory to write to")
	}
	pages, err := c.pages(ctx)
	if err != nil {
		return err
	}
	for _, file := range flags.Args()[1:] {
		more, err := pagesOf(ctx, file)
		if err != nil {
			return err
		}
		for i := range more {
			pages = append(pages, more[i].Of(filepath.Base(file)))
		}
	}
	return writePages(flags.Arg(0), pages)
}

func writePages(dir string, pages []manual.Page) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages are for everybody
		return fmt.Errorf("write pages for man: %w", err)
	}
	for _, p := range pages {
		file := filepath.Join(dir, p.ManName()+".1")
		if err := os.WriteFile(file, []byte(p.Man(cli.BuildDate(), pages)), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write pages for man: %w", err)
		}
	}
	return nil
}

// pages is the help of criticizer itself.
func (c console) pages(ctx context.Context) ([]manual.Page, error) {
	return manual.Collect(func(args ...string) (string, error) {
		var text strings.Builder
		to := c
		to.stdout, to.onWork = &text, nil
		if err := to.run(ctx, args); statusOf(c.stderr, err) != 0 {
			return "", errReported
		}
		return text.String(), nil
	})
}

// pagesOf is the help of another program.
func pagesOf(ctx context.Context, file string) ([]manual.Page, error) {
	if !strings.ContainsRune(file, filepath.Separator) {
		file = "." + string(filepath.Separator) + file
	}
	return manual.Collect(func(args ...string) (string, error) {
		text, err := exec.CommandContext(ctx, file, args...).Output() //nolint:gosec // whoever names a program may run it
		if err != nil {
			return "", advise(fmt.Errorf("run %s %s: %w", file, strings.Join(args, " "), err), "name the file of worker or starter, such as build/bin/worker")
		}
		return string(text), nil
	})
}
