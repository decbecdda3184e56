package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status CHANGELIST", Short: "Show everything about one changelist's reviews",
		Long: `Shows every review of a changelist: its job, what it waits for, its model
and cost, the dropped findings, the deliveries, the dead letters and their replays.`,
		Example: "  criticizer status 4711 --json | jq '.[].state'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := parseChangelist(args[0])
			if err != nil {
				return err
			}
			db, cfg, err := c.database(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			views, err := readRows(cmd.Context(), db, cfg, cl)
			if err == nil && len(views) == 0 {
				err = advise(fmt.Errorf("changelist %d has no review", cl), "to see why: criticizer why %d", cl)
			}
			if err != nil {
				return err
			}
			temporal, err := askTemporal(cmd.Context(), cfg, views)
			if temporal != nil {
				temporal.Close()
			}
			return errors.Join(c.print(views, func(w io.Writer) {
				for i, v := range views {
					if i > 0 {
						fmt.Fprintln(w)
					}
					v.print(w)
				}
			}), err)
		},
	}
}

// A reviewView is one review with all that belongs to it. The commands status,
// deadletter and delivery read the parts that they show, and render.go prints them.
type reviewView struct {
	store.ReviewRow
	// Gaps are the parts that no model could read, for 30 days.
	Gaps       []review.Unread `json:"gaps,omitempty"`
	Run        *runView        `json:"run,omitempty"`        // nil if Temporal does not know it or could not be asked
	Provenance *review.Record  `json:"provenance,omitempty"` // nil until a model has reviewed it
	// Recipients are the people around the change, for 30 days.
	Recipients  []store.RecipientDecision `json:"recipients,omitempty"`
	Notice      *store.NoticeRow          `json:"notice,omitempty"` // to the author, that the review waits
	Deliveries  []store.OutboxEntry       `json:"deliveries"`
	DeadLetters []deadLetterView          `json:"dead_letters"`

	// Outages are the circuit breakers that are not closed, of all stages. They are nil for a
	// review that has ended.
	Outages []store.Outage `json:"outages,omitempty"`

	temporalAsked bool
}

// A deadLetterView is one dead letter.
type deadLetterView struct {
	store.DeadLetter
	Replays     []store.Replay     `json:"replays"`
	Page        *store.PageState   `json:"page,omitempty"`
	Trail       []store.AuditEntry `json:"trail"`
	TemporalURL string             `json:"temporal_url,omitempty"` // of the failed run
}

// A deliveryView is one row of the outbox, as delivery show prints it.
type deliveryView struct {
	store.OutboxEntry
	// Keys are in the message, to find it at the mail server. They are known to a
	// command with the evidence key only.
	Keys  []string           `json:"keys,omitempty"`
	Tries []store.AttemptRow `json:"tries,omitempty"`
	Trail []store.AuditEntry `json:"trail,omitempty"`
}

// askTemporal adds the runs to the reviews. If Temporal cannot be asked, they stay without.
func askTemporal(ctx context.Context, cfg *settings.Config, views []*reviewView) (*runs, error) {
	temporal, err := dialTemporal(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		switch run, err := temporal.current(ctx, v.WorkflowID); {
		case err == nil:
			v.Run = &run
		case !errors.Is(err, errForgotten):
			return &temporal, err
		}
		v.temporalAsked = true
	}
	return &temporal, nil
}

// readRows reads what the database has about the reviews of a changelist.
func readRows(ctx context.Context, db *store.DB, cfg *settings.Config, cl review.Changelist) ([]*reviewView, error) {
	rows, err := db.Reviews(ctx, cl)
	deliveries, errDeliveries := db.FindDeliveries(ctx, store.DeliveryFilter{Changelist: cl, Limit: mostListed})
	recipients, errRecipients := db.RecipientDecisions(ctx, cl)
	notices, errNotices := db.Notices(ctx, cl)
	letters, errLetters := db.DeadLetters(ctx, store.DeadLetterFilter{Changelist: cl})
	records, errRecords := db.ReviewRecords(ctx, cl)
	outages, errOutages := db.Outages(ctx)
	gaps, errGaps := db.Gaps(ctx, cl)
	if err := errors.Join(err, errGaps, errDeliveries, errRecipients, errNotices, errLetters, errRecords, errOutages); err != nil {
		return nil, err
	}
	views := make([]*reviewView, len(rows))
	for i, row := range rows {
		v := &reviewView{
			ReviewRow: row, Gaps: gaps[row.Version], DeadLetters: []deadLetterView{},
			Recipients: ofVersion(row.Version, recipients, func(r store.RecipientDecision) review.Version { return r.Version }),
			Deliveries: ofVersion(row.Version, deliveries, func(d store.OutboxEntry) review.Version { return d.Version }),
		}
		if record, ok := records[row.Version]; ok {
			v.Provenance = &record
		}
		if row.State == review.JobInProgress {
			v.Outages = outages
		}
		for _, n := range ofVersion(row.Version, notices, func(n store.NoticeRow) review.Version { return n.Version }) {
			v.Notice = &n
		}
		for _, l := range ofVersion(row.Version, letters, func(l store.DeadLetter) review.Version { return l.Version }) {
			letter, err := completeDeadLetter(ctx, db, cfg, l)
			if err != nil {
				return nil, err
			}
			v.DeadLetters = append(v.DeadLetters, letter)
		}
		views[i] = v
	}
	return views, nil
}

// ofVersion returns the rows of one version of a review.
func ofVersion[T any](v review.Version, rows []T, version func(T) review.Version) []T {
	return slices.DeleteFunc(append([]T{}, rows...), func(row T) bool { return version(row) != v })
}

func completeDeadLetter(ctx context.Context, db *store.DB, cfg *settings.Config, l store.DeadLetter) (v deadLetterView, err error) {
	v.DeadLetter, v.TemporalURL = l, cfg.Temporal.RunURL(l.WorkflowID, l.RunID)
	if v.Replays, err = db.Replays(ctx, l.ID); err != nil {
		return v, err
	}
	if v.Page, err = db.PageOf(ctx, l.ID); err != nil {
		return v, err
	}
	v.Trail, err = db.Trail(ctx, l.ID)
	return v, err
}

// found adds the hint for an ID that does not exist.
func found[T any](row T, err error, hint string) (T, error) {
	if failure.ClassOf(err) == failure.NotFound {
		err = advise(err, "%s", hint)
	}
	return row, err
}

func findDeadLetter(ctx context.Context, db *store.DB, id int64) (store.DeadLetter, error) {
	l, err := db.DeadLetter(ctx, id)
	return found(l, err, "to list all dead letters: criticizer deadletter list --state all")
}

func findDelivery(ctx context.Context, db *store.DB, id int64) (store.OutboxEntry, error) {
	d, err := db.FindDelivery(ctx, id)
	return found(d, err, "to list all deliveries: criticizer delivery list")
}

func keyOf(d store.OutboxEntry) review.DeliveryKey {
	return review.DeliveryKey{Changelist: d.Changelist, Recipient: d.Recipient, Version: d.Version}
}

// States of dead letters. Unresolved ones need attention; the dead letter of a
// replay replaces one that failed again.
var (
	deadLetterStates = []store.DeadLetterState{store.DeadLetterOpen, store.DeadLetterReplaying, store.DeadLetterFailedAgain, store.DeadLetterResolved}
	unresolved       = []store.DeadLetterState{store.DeadLetterOpen, store.DeadLetterReplaying}
)

func isUnresolved(l store.DeadLetter) bool { return slices.Contains(unresolved, l.State) }
