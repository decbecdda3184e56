package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// comesBack is when a review that waits for slots and has not asked again is taken
// for one that is gone: twice the time that it may take.
const comesBack = 2 * time.Minute

// uncheckedFor is how long the word of Temporal that a review goes on is believed.
const uncheckedFor = 30 * time.Second

// NeedSlots notes of which patterns a review needs a slot each.
func (d *DB) NeedSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error {
	return interpret("note which slots a review needs", d.q.SaveAdmission(ctx, db.SaveAdmissionParams{
		ChangelistID: cl, ReviewVersion: v, Patterns: patterns, ByBot: byBot,
	}))
}

// TakeSlots gives a review all slots that it needs, or none; limits says how many
// each pattern has, and one that it does not name has no end of them. The review has
// them until its job ends or is begun again. Asking again changes nothing. place is 0
// if it has them, else how many reviews must end before it gets them; it must ask
// again within a minute, or others may get them before it.
func (d *DB) TakeSlots(ctx context.Context, key string, limits map[string]int) (place int, err error) {
	err = d.inTx(ctx, "take slots", func(q *db.Queries) error {
		if err := q.LockAdmissions(ctx); err != nil {
			return err
		}
		row, err := q.Admission(ctx, key)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // it needs none
		}
		if err != nil {
			return err
		}
		place, err = takeSlots(ctx, q, row, limits)
		return err
	})
	return place, err
}

func takeSlots(ctx context.Context, q *db.Queries, row db.AdmissionRow, limits map[string]int) (place int, err error) {
	if row.Admitted {
		return 0, nil
	}
	place, waitsFor, err := placeOf(ctx, q, row, limits)
	switch {
	case err != nil:
		return 0, err
	case place > 0:
		return place, q.AwaitSlots(ctx, db.AwaitSlotsParams{
			ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion, WaitsFor: waitsFor, BackIn: comesBack,
		})
	}
	return 0, q.GiveSlots(ctx, db.GiveSlotsParams{ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion, RunID: row.RunID})
}

// placeOf returns which of its patterns a review has to wait for, and how many
// others must end before it need not.
func placeOf(ctx context.Context, q *db.Queries, row db.AdmissionRow, limits map[string]int) (place int, waitsFor []string, err error) {
	taken, err := q.Taken(ctx, db.TakenParams{ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion})
	for _, t := range taken {
		if limit, ok := limits[t.Pattern]; ok && int(t.Taken) >= limit {
			place = max(place, int(t.Taken)-limit+1)
			waitsFor = append(waitsFor, t.Pattern)
		}
	}
	return place, waitsFor, err
}

// FreeEnded takes the slots that a waiting review needs from those of which endOf
// says that their workflow has ended, though their job has not: somebody terminated
// it. One that is reset has its slots again. Each review is asked for at times only,
// however many wait for it. freed is how many have lost theirs.
func (d *DB) FreeEnded(ctx context.Context, key string, endOf func(ctx context.Context, workflowID string) (how string, err error)) (freed int, err error) {
	holders, err := d.q.HoldersToCheck(ctx, db.HoldersToCheckParams{IdempotencyKey: key, UncheckedFor: uncheckedFor})
	if err != nil {
		return 0, interpret("look for reviews that have slots", err)
	}
	for _, h := range holders {
		how, err := endOf(ctx, h.IdempotencyKey)
		if err != nil {
			return freed, err
		}
		ended := how != ""
		if ended == h.Ended {
			continue
		}
		n, err := d.q.MarkEnded(ctx, db.MarkEndedParams{IdempotencyKey: h.IdempotencyKey, RunID: h.RunID, Ended: ended})
		if err != nil {
			return freed, interpret("free the slots of a review that has ended", err)
		}
		if ended && n > 0 {
			freed++
			d.lg.WarnContext(ctx, "review ended without a word, its slots are free", "workflow_id", h.IdempotencyKey, "end", how)
		}
	}
	return freed, nil
}

// A Wait is a review that waits for slots.
type Wait struct {
	For   []string  `json:"for"` // patterns of worker.max_in_flight_per_path
	Since time.Time `json:"since"`
}

// Waits returns which reviews of a changelist wait for slots.
func (d *DB) Waits(ctx context.Context, cl review.Changelist) (map[review.Version]Wait, error) {
	rows, err := d.q.WaitsOfChangelist(ctx, cl)
	waits := map[review.Version]Wait{}
	for _, r := range rows {
		waits[r.ReviewVersion] = Wait{For: r.WaitsFor, Since: r.AskedAt}
	}
	return waits, interpret("read who waits for slots", err)
}

// A SlotUse is how many reviews have a slot of one pattern, and how many wait for one.
type SlotUse struct {
	Taken, Awaited int
	Longest        time.Duration // that one of them has waited
	Next           string        // of those that wait, such as "4711 v1"
}

// SlotsInUse returns by pattern whose slots are in use.
func (d *DB) SlotsInUse(ctx context.Context) (map[string]SlotUse, error) {
	rows, err := d.q.SlotUse(ctx)
	use := map[string]SlotUse{}
	for _, r := range rows {
		use[r.Pattern] = SlotUse{int(r.Taken), int(r.Awaited), time.Duration(r.LongestSeconds) * time.Second, r.Next}
	}
	return use, interpret("count slots", err)
}
