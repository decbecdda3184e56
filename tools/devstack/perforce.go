package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Changes that are reviewed by default: the newest of a depot, all of the sample.
const (
	fewChanges = 5
	allChanges = 1000
)

// openPerforce makes the p4 command and chooses the changelists to review.
func (e *environment) openPerforce(ctx context.Context) error {
	if e.depot.path == "" {
		e.p4 = "p4"
	} else if err := e.openSimulation(ctx); err != nil {
		return err
	}
	var err error
	if e.changes, err = e.listChanges(ctx); err != nil {
		return err
	}
	if e.depot.path != "" {
		e.depot.allowed = depotsOf(e.changes)
	}
	e.settings["p4"] = map[string]any{
		"command": e.p4, "port": e.depot.port, "user": e.depot.user, "allowed_paths": e.depot.allowed, "state_dir": filepath.Join(e.dir, "p4"),
	}
	if e.depot.sample {
		sampleSettings(e.settings)
	}
	return nil
}

// openSimulation makes p4sim the p4 command. p4sim reads the history of a git
// repository now, so that no review has to wait for it.
func (e *environment) openSimulation(ctx context.Context) error {
	e.depot.port, e.depot.user = "ssl:p4sim:1666", "criticizer"
	if err := e.writeP4(e.command("p4sim"), e.depot.path); err != nil {
		return err
	}
	return e.out.during("reading "+e.depot.path, func() error {
		if _, err := run(ctx, e.p4Command(ctx, "info", "-s")); err != nil {
			return fmt.Errorf("read %s: %w", e.depot.path, err)
		}
		return nil
	})
}

// p4Command returns one run of p4. p4sim gets no environment, because that may
// have the settings of a real server.
func (e *environment) p4Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.p4, args...)
	if e.depot.path != "" {
		cmd.Env = []string{"P4PORT=" + e.depot.port, "P4USER=" + e.depot.user}
	}
	return cmd
}

// listChanges returns the newest changelists, oldest first.
func (e *environment) listChanges(ctx context.Context) ([]submitted, error) {
	few := uint(fewChanges)
	if e.depot.sample {
		few = allChanges
	}
	args := []string{"-ztag", "changes", "-s", "submitted", "-m", fmt.Sprint(cmp.Or(e.opts.changes, few))}
	text, err := run(ctx, e.p4Command(ctx, append(args, e.depot.allowed...)...))
	if err != nil {
		return nil, fmt.Errorf("list the changes: %w", err)
	}
	list, err := parseChanges(text)
	if err == nil && len(list) == 0 {
		err = errors.New("list the changes: there are none")
	}
	return list, err
}

// A submitted changelist, as p4 changes lists it.
type submitted struct {
	changelist review.Changelist
	depot      string // such as //depot
}

var (
	changeLine = regexp.MustCompile(`^\.\.\. change (\d+)$`)
	pathLine   = regexp.MustCompile(`^\.\.\. path (//[^/]+)/`)
)

// parseChanges reads the output of p4 -ztag changes. It returns the
// changelists in ascending order.
func parseChanges(text string) ([]submitted, error) {
	var list []submitted
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := changeLine.FindStringSubmatch(line); m != nil {
			cl, err := review.ParseChangelist(m[1])
			if err != nil {
				return nil, fmt.Errorf("list the changes: %w", err)
			}
			list = append(list, submitted{changelist: cl})
		}
		if m := pathLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			list[len(list)-1].depot = m[1]
		}
	}
	slices.SortFunc(list, func(a, b submitted) int { return cmp.Compare(a.changelist, b.changelist) })
	return list, nil
}

// depotsOf returns the paths of all depots that the changes are in.
func depotsOf(list []submitted) []string {
	var depots []string
	for _, c := range list {
		if tree := c.depot + "/..."; c.depot != "" && !slices.Contains(depots, tree) {
			depots = append(depots, tree)
		}
	}
	return depots
}
