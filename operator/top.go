package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/store"
)

const topUsage = `usage: criticizer top [-every D] [-json]

Shows what goes on: the reviews in progress by stage, what waits for workers,
the outage breakers, the dead letters, the mails that are not sent yet, and who has
and who awaits the slots of worker.max_in_flight_per_path. On a terminal it does
so again and again until Ctrl-C; elsewhere, once.

flags:
  -every D   how often (default 2s)
  -json      print one JSON object, once

examples:
  criticizer top
  criticizer top -json | jq .outbox.waiting

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// Sequences of a terminal: go home, clear what is below.
const (
	cursorHome = "\x1b[H"
	clearBelow = "\x1b[J"
)

// top implements criticizer top.
func top(ctx context.Context, args []string, c console) error {
	flags := c.flags("top", topUsage)
	every := flags.Duration("every", 2*time.Second, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return badUsage("top takes no arguments: got %q", flags.Arg(0))
	case *every <= 0:
		return badUsage("-every %s is not above zero", *every)
	}
	db, cfg, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	look := func() (overview, error) { return c.lookAround(ctx, db, cfg) }
	if *asJSON || !isTerminal(c.stdout) {
		now, err := look()
		if *asJSON {
			return errors.Join(c.printJSON(now), err)
		}
		now.print(c.stdout)
		return err
	}
	watch(ctx, c.stdout, *every, func() (columns, rows int) { return sizeOf(c.stdout) }, look)
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sizeOf is the size of a terminal, that of the oldest ones if it does not tell.
func sizeOf(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// fitted cuts a page to a screen, which would otherwise wrap and scroll, so that
// the next page is not drawn over this one.
func fitted(page string, columns, rows int) string {
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if hidden := len(lines) - (rows - 1); hidden > 0 { // the last line is the cursor's
		lines = append(lines[:max(0, rows-2)], fmt.Sprintf("%d more lines", hidden+1))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > columns {
			lines[i] = string(runes[:columns-1]) + "…"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// watch draws an overview over the one before until ctx ends. What cannot be had
// is an error on the screen: it may be had the next time.
func watch(ctx context.Context, screen io.Writer, every time.Duration, size func() (columns, rows int), look func() (overview, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		var page strings.Builder
		now, err := look()
		now.print(&page)
		if err != nil {
			fmt.Fprintln(&page)
			report(&page, err)
		}
		columns, rows := size()
		fmt.Fprint(screen, cursorHome+clearBelow+fitted(page.String(), columns, rows))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// An overview is what goes on at one moment.
type overview struct {
	At          time.Time      `json:"at"`
	Reviews     map[string]int `json:"reviews"` // by state; nil if Postgres could not be asked
	OldestS     int            `json:"oldest_review_seconds"`
	Stages      []stageView    `json:"stages"`
	DeadLetters []letterCount  `json:"dead_letters"`
	Escalated   int            `json:"escalated"`
	OldestDeadS int            `json:"oldest_dead_letter_seconds"`
	Outbox      outboxView     `json:"outbox"`
	Slots       []slotView     `json:"slots"`
}

// A stageView is one task queue, and the reviews that are in its stage.
type stageView struct {
	Stage   string `json:"stage"`
	Reviews *int64 `json:"reviews,omitempty"` // nil: not counted by itself
	Waiting int64  `json:"waiting"`           // for a worker
	OldestS int    `json:"oldest_seconds"`
	BreakerOpen  bool   `json:"braked"`
}

// A letterCount counts the unresolved dead letters of one kind.
type letterCount struct {
	Stage string `json:"stage"`
	Class string `json:"class"`
	State string `json:"state"`
	Count int    `json:"count"`
}

// A slotView is one entry of worker.max_in_flight_per_path, or a path that had one.
type slotView struct {
	Path    string `json:"path"`
	Limit   int    `json:"limit,omitempty"` // 0: this configuration has none
	Taken   int    `json:"taken"`
	Waiting int    `json:"waiting"`
	OldestS int    `json:"oldest_seconds"`
	Next    string `json:"next,omitempty"` // in line, such as "4711 v1"
}

type outboxView struct {
	Waiting   int `json:"waiting"`
	OldestS   int `json:"oldest_seconds"`
	Ambiguous int `json:"ambiguous"`
}

// lookAround asks Postgres and Temporal, and says what one of them tells if the
// other cannot be asked.
func (c console) lookAround(ctx context.Context, db *store.DB, cfg *config.Config) (overview, error) {
	o := overview{At: time.Now().UTC().Truncate(time.Second), DeadLetters: []letterCount{}, Stages: []stageView{}, Slots: []slotView{}}
	figures, err := db.Figures(ctx)
	if err != nil {
		err = adviseDatabase(err)
	} else {
		o.Reviews = map[string]int{}
		err = o.addSlots(ctx, db, cfg)
	}
	for _, f := range figures {
		o.add(f)
	}
	return o, errors.Join(err, o.addStages(ctx, c, cfg))
}

// addSlots tells of the paths that are configured, in their order, and of others of
// which a worker has been told.
func (o *overview) addSlots(ctx context.Context, db *store.DB, cfg *config.Config) error {
	limits, err := wiring.InFlight(cfg)
	if err != nil {
		return err
	}
	use, err := db.SlotsInUse(ctx)
	if err != nil {
		return adviseDatabase(err)
	}
	paths := limits.Patterns()
	for _, path := range slices.Sorted(maps.Keys(use)) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		u := use[path]
		o.Slots = append(o.Slots, slotView{path, limits.Limits()[path], u.Taken, u.Awaited, int(u.Longest.Seconds()), u.Next})
	}
	return nil
}

// addStages asks Temporal, on a connection of its own: a watch outlives many.
func (o *overview) addStages(ctx context.Context, c console, cfg *config.Config) error {
	temporal, err := c.runs(ctx, cfg)
	if err != nil {
		return err
	}
	defer temporal.Close()
	for _, queue := range activities.WatchedQueues() {
		view, err := temporal.view(ctx, breakerQueue{activities.StageOf(queue), queue})
		if err != nil {
			return advise(err, "criticizer doctor finds out what is amiss")
		}
		o.Stages = append(o.Stages, view)
	}
	return nil
}

// add takes up one figure; many are for monitoring alone.
func (o *overview) add(f store.Figure) {
	n := int(f.Value)
	switch f.Name {
	case "criticizer_reviews":
		o.Reviews[f.Labels["state"]] = n
	case "criticizer_review_oldest_seconds":
		o.OldestS = n
	case "criticizer_dead_letters":
		if state := store.LetterState(f.Labels["state"]); state == store.LetterOpen || state == store.LetterReplaying {
			o.DeadLetters = append(o.DeadLetters, letterCount{f.Labels["stage"], f.Labels["class"], string(state), n})
		}
	case "criticizer_dead_letters_escalated":
		o.Escalated = n
	case "criticizer_dead_letter_oldest_seconds":
		o.OldestDeadS = n
	case "criticizer_outbox_depth":
		o.Outbox.Waiting = n
	case "criticizer_outbox_oldest_seconds":
		o.Outbox.OldestS = n
	case "criticizer_deliveries_ambiguous":
		o.Outbox.Ambiguous = n
	}
}
