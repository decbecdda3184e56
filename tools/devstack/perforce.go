package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// A few changelists are reviewed when nobody says how many.
const (
	fewChanges   = 5
	fewOfHistory = 8 // of a recorded depot, spread over its history
)

// openPerforce makes the p4 command and picks what is to be reviewed.
func (at *site) openPerforce(ctx context.Context) error {
	if at.depot.port != "" {
		at.p4 = "p4"
		at.settings.p4Port, at.settings.p4User = at.depot.port, at.opts.getenv("P4USER")
	} else if err := at.openStandIn(ctx); err != nil {
		return err
	}
	all, err := at.listChanges(ctx)
	if err != nil {
		return err
	}
	at.changes = all
	if at.depot.recorded && at.opts.changes == 0 {
		at.changes = spread(all, fewOfHistory)
	}
	if at.depot.port == "" {
		at.settings.allowed = depotsOf(all)
	}
	return nil
}

// openStandIn makes p4sim the p4 command, and lets it read its depot now, so
// that no review has to wait for that.
func (at *site) openStandIn(ctx context.Context) error {
	at.settings.p4Port, at.settings.p4User = "p4sim:1666", "criticizer"
	if err := at.writeP4(at.command("p4sim"), at.depot.path); err != nil {
		return err
	}
	return at.out.during("reading "+at.depot.path, func() error {
		cmd := at.p4Command(ctx, "index")
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, at.out.w
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("read %s: %w\n%s", at.depot.path, err, text.Bytes())
		}
		return nil
	})
}

// p4Command is one run of p4. A stand-in gets none of the environment, where
// settings of a real server may be.
func (at *site) p4Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, at.p4, args...)
	interruptible(cmd)
	if at.depot.port == "" {
		cmd.Env = []string{"P4PORT=" + at.settings.p4Port, "P4USER=" + at.settings.p4User}
	}
	return cmd
}

// listChanges asks p4 for the newest changelists, oldest first; of a recorded
// depot, unless a number was asked for, for all.
func (at *site) listChanges(ctx context.Context) ([]submitted, error) {
	args := []string{"-ztag", "changes", "-s", "submitted"}
	if n := at.opts.changes; !at.depot.recorded || n != 0 {
		args = append(args, "-m", strconv.Itoa(cmp.Or(n, fewChanges)))
	}
	cmd := at.p4Command(ctx, append(args, at.depot.allowed...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the changes: p4 changes: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	list, err := parseChanges(string(text))
	if err == nil && len(list) == 0 {
		err = errors.New("list the changes: there are none to review")
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

// spread picks n of list, evenly, with the first and the last.
func spread(list []submitted, n int) []submitted {
	if n >= len(list) {
		return list
	}
	if n == 1 {
		return list[len(list)-1:]
	}
	picked := make([]submitted, n)
	for i := range n {
		picked[i] = list[i*(len(list)-1)/(n-1)]
	}
	return picked
}

// depotsOf allows the whole of every depot the changes are in.
func depotsOf(list []submitted) []string {
	var depots []string
	for _, c := range list {
		if tree := c.depot + "/..."; c.depot != "" && !slices.Contains(depots, tree) {
			depots = append(depots, tree)
		}
	}
	return depots
}
