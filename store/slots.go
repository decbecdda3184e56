package store

import (
	"context"
	"errors"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// RequireSlots records the patterns of which a review needs a slot each.
func (d *DB) RequireSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error {
	return interpret("record slots of a review", d.q.SaveAdmission(ctx, db.SaveAdmissionParams{
		ChangelistID: cl, ReviewVersion: v, Patterns: patterns, ByBot: byBot,
	}))
}

// AcquireSlots acquires all slots that a review needs, or none. limits has the number of
// slots of each pattern; a pattern without a limit is unlimited. The review holds the
// slots until its job ends or gets another run, and acquiring again changes nothing. A
// review that has not acquired them waits until [DB.PassOnSlots] gives them to it. The cost
// does not depend on the number of waiting reviews.
func (d *DB) AcquireSlots(ctx context.Context, key string, limits map[string]int) (acquired bool, err error) {
	return d.acquireSlots(ctx, key, limits, false)
}

// acquireSlots acquires slots for the review itself or, if given is set, for a review that
// waits for them.
func (d *DB) acquireSlots(ctx context.Context, key string, limits map[string]int, given bool) (acquired bool, err error) {
	err = d.inTx(ctx, "acquire slots", func(q *db.Queries) error {
		of, err := q.ShareUnfinishedJob(ctx, key)
		if noRow(err) {
			acquired = !given // a review that has ended needs no slot
			return nil
		}
		if err != nil {
			return err
		}
		if err := q.LockSlots(ctx, db.LockSlotsParams(of)); err != nil {
			return err
		}
		s, err := q.SlotState(ctx, db.SlotStateParams{ChangelistID: int64(of.ChangelistID), ReviewVersion: int(of.ReviewVersion), Limits: encoded(limits)})
		if err != nil {
			return err
		}
		set := db.SetSlotsParams{ChangelistID: of.ChangelistID, ReviewVersion: of.ReviewVersion, State: "awaited", Given: given}
		if acquired = s.Held && !given || s.Free && (s.Awaited || !given); acquired {
			set.State = "held"
		}
		if given && !acquired {
			return nil
		}
		return q.SetSlots(ctx, set)
	})
	return acquired, err
}

// PassOnSlots gives free slots to the reviews that are next in line and wakes each, with its
// workflow and run. It passes on the slots that the review with the key has released or,
// without a key, all free slots; then it also wakes reviews that have not noticed yet.
func (d *DB) PassOnSlots(ctx context.Context, key string, limits map[string]int, wake func(ctx context.Context, workflowID, runID string) error) error {
	patterns, err := d.q.PatternsOfReview(ctx, key)
	if key == "" {
		patterns, err = d.q.AwaitedPatterns(ctx)
	}
	if err != nil {
		return interpret("read patterns of slots", err)
	}
	var errs []error
	for _, pattern := range patterns {
		errs = append(errs, d.passOn(ctx, pattern, limits, wake))
	}
	if key != "" {
		return errors.Join(errs...)
	}
	unnoticed, err := d.q.UnnoticedSlots(ctx)
	for _, u := range unnoticed {
		errs = append(errs, wake(ctx, u.IdempotencyKey, u.RunID))
	}
	return errors.Join(append(errs, interpret("read given slots", err))...)
}

// passOn gives the free slots of one pattern. A review that acquires its slots meanwhile
// has committed its wait before the reviews in line are read.
func (d *DB) passOn(ctx context.Context, pattern string, limits map[string]int, wake func(ctx context.Context, workflowID, runID string) error) error {
	var next []db.NextInLineRow
	err := d.inTx(ctx, "read the reviews next in line", func(q *db.Queries) (err error) {
		if err = q.LockPattern(ctx, pattern); err == nil {
			next, err = q.NextInLine(ctx, db.NextInLineParams{Pattern: pattern, Limits: encoded(limits)})
		}
		return err
	})
	for _, n := range next {
		acquired, errAcquire := d.acquireSlots(ctx, n.IdempotencyKey, limits, true)
		if acquired {
			errAcquire = wake(ctx, n.IdempotencyKey, n.RunID)
		}
		err = errors.Join(err, errAcquire)
	}
	return err
}

// A Wait is a review that waits for slots.
type Wait struct {
	For   []string  `json:"for"` // patterns of worker.max_in_flight_per_path
	Since time.Time `json:"since"`
}

// Waits returns the waiting reviews of a changelist.
func (d *DB) Waits(ctx context.Context, cl review.Changelist) (map[review.Version]Wait, error) {
	rows, err := d.q.WaitsOfChangelist(ctx, cl)
	waits := map[review.Version]Wait{}
	for _, r := range rows {
		waits[r.ReviewVersion] = Wait{For: r.WaitsFor, Since: r.AskedAt}
	}
	return waits, interpret("read waiting reviews", err)
}

// A SlotUse counts the reviews that hold a slot of one pattern and those that wait.
type SlotUse struct {
	Taken, Awaited int
	Longest        time.Duration // longest wait
	Next           string        // next waiting review, such as "4711 v1"
}

// SlotsInUse returns the use of the slots by pattern.
func (d *DB) SlotsInUse(ctx context.Context) (map[string]SlotUse, error) {
	rows, err := d.q.SlotUse(ctx)
	use := map[string]SlotUse{}
	for _, r := range rows {
		use[r.Pattern] = SlotUse{r.Taken, r.Awaited, time.Duration(r.LongestSeconds) * time.Second, r.Next}
	}
	return use, interpret("count slots", err)
}
