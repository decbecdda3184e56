package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// waiterTimeout is how long a waiting review keeps its place without asking again:
// twice the interval in which it asks.
const waiterTimeout = 2 * time.Minute

// RequireSlots records the patterns of which a review needs a slot each.
func (d *DB) RequireSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error {
	return interpret("record slots of a review", d.q.SaveAdmission(ctx, db.SaveAdmissionParams{
		ChangelistID: cl, ReviewVersion: v, Patterns: patterns, ByBot: byBot,
	}))
}

// AcquireSlots acquires all slots that a review needs, or none. limits has the number of
// slots of each pattern; a pattern without a limit is unlimited. The review holds the
// slots until its job ends or starts again, and acquiring again changes nothing. place
// is 0 if the review holds the slots, else the number of reviews that must end before
// it does. A waiting review must ask again within a minute to keep its place.
func (d *DB) AcquireSlots(ctx context.Context, key string, limits map[string]int) (place int, err error) {
	err = d.inTx(ctx, "acquire slots", func(q *db.Queries) error {
		if err := q.LockAdmissions(ctx); err != nil {
			return err
		}
		row, err := q.Admission(ctx, key)
		if noRow(err) {
			return nil // needs no slot
		}
		if err != nil {
			return err
		}
		place, err = acquireSlots(ctx, q, row, limits)
		return err
	})
	return place, err
}

func acquireSlots(ctx context.Context, q *db.Queries, row db.AdmissionRow, limits map[string]int) (place int, err error) {
	if row.Admitted {
		return 0, nil
	}
	taken, err := q.SlotsTaken(ctx, db.SlotsTakenParams{ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion})
	if err != nil {
		return 0, err
	}
	var waitsFor []string
	for _, t := range taken {
		if limit, ok := limits[t.Pattern]; ok && t.Taken >= limit {
			place = max(place, t.Taken-limit+1)
			waitsFor = append(waitsFor, t.Pattern)
		}
	}
	if place > 0 {
		return place, q.AwaitSlots(ctx, db.AwaitSlotsParams{
			ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion, WaitsFor: waitsFor, BackIn: waiterTimeout,
		})
	}
	return 0, q.AcquireSlots(ctx, db.AcquireSlotsParams{ChangelistID: row.ChangelistID, ReviewVersion: row.ReviewVersion, RunID: row.RunID})
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
