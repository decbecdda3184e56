package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

const grace, bounced, watch = 30 * time.Minute, 5 * time.Minute, 7 * 24 * time.Hour

// backdate moves all times of the row into the past.
func backdate(t *testing.T, d *storetest.Database, by string) {
	t.Helper()
	exec(t, d.Conn(t), fmt.Sprintf(`update criticizer.deliveries set last_attempt_at = last_attempt_at - interval '%[1]s',
		notified_at = notified_at - interval '%[1]s', checked_at = checked_at - interval '%[1]s'`, by))
}

// end ends the review in the given state, unless it is in progress.
func end(t *testing.T, d *storetest.Database, state review.JobState) {
	t.Helper()
	if state == review.JobInProgress {
		return
	}
	outcome := "null"
	if state == review.JobSucceeded {
		outcome = "'clean'"
	}
	exec(t, d.Conn(t), fmt.Sprintf(`update criticizer.jobs set state = '%s', outcome = %s, finished_at = now()`, state, outcome))
}

func due(t *testing.T, db *store.DB) []review.DueDelivery {
	t.Helper()
	return must(db.DueDeliveries(t.Context(), grace, bounced, watch, 10))(t)
}

// The rows that reconciliation checks, and those that it must not (notification 8.2, 8.3).
func TestDueDeliveries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		state string // of the row
		aged  string
		job   review.JobState
		due   bool
	}{
		{"begun and not concluded", "begun", "31 minutes", review.JobRetryableFailed, true},
		{"begun by a review that runs", "begun", "31 minutes", review.JobInProgress, true},
		{"begun a moment ago", "begun", "29 minutes", review.JobInProgress, false},
		{"held", "held", "31 minutes", review.JobRetryableFailed, true},
		{"never begun, and its review runs", "new", "1 day", review.JobInProgress, false},
		{"never begun, and its review is dead", "new", "1 day", review.JobRetryableFailed, false},
		{"never begun, and its review is over", "new", "0 s", review.JobSucceeded, true},
		{"sent", "sent", "6 minutes", review.JobSucceeded, true},
		{"sent a moment ago", "sent", "4 minutes", review.JobSucceeded, false},
		{"sent long ago", "sent", "8 days", review.JobSucceeded, false},
		{"sent by a review that runs", "sent", "31 minutes", review.JobInProgress, false},
		{"failed", "failed", "31 minutes", review.JobRetryableFailed, false},
		{"waived", "waived", "31 minutes", review.JobSucceeded, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			notify, _, d, id := rowIn(t, tc.state)
			backdate(t, d, tc.aged)
			end(t, d, tc.job)
			got := due(t, notify)
			if len(got) > 0 != tc.due {
				t.Fatalf("%d rows are due", len(got))
			}
			if tc.due && (got[0].ID != id || got[0].JobState != tc.job || got[0].Confirmed) {
				t.Errorf("due is %+v", got[0])
			}
		})
	}
}

// Rows that stay open for weeks, such as held ones, take turns with sent rows: a run has a limit.
func TestOpenRowsLeaveRoomForSentRows(t *testing.T) {
	t.Parallel()
	notify, _, d, held := rowIn(t, "held")
	sent := prepare(t, notify, "alice@corp.test", "bob@corp.test")[1]
	testkit.NoError(t, notify.MarkSent(t.Context(), must(notify.BeginDelivery(t.Context(), sent))(t).ID, "m2", "accepted"))
	backdate(t, d, "31 minutes")
	end(t, d, review.JobRetryableFailed)
	for _, want := range []int64{held, sent.ID, held} {
		got := must(notify.DueDeliveries(t.Context(), grace, bounced, watch, 1))(t)
		if len(got) != 1 || got[0].ID != want {
			t.Fatalf("due is %+v, want row %d", got, want)
		}
		testkit.NoError(t, notify.RecordCheck(t.Context(), want, false))
	}
}

func TestPartialWriteIsDue(t *testing.T) { // notification_id without notified_at (notification 6.4)
	t.Parallel()
	notify, operator, d, id := rowIn(t, "new")
	exec(t, d.Conn(t), `update criticizer.deliveries set notification_id = 'm1'`)
	if got := due(t, notify); len(got) != 1 || got[0].NotificationID != "m1" {
		t.Errorf("due is %+v", got)
	}
	if _, err := operator.ReaddressDelivery(t.Context(), id, "b@corp.test", "olga", "INC-1"); err == nil || !strings.Contains(err.Error(), "may have been accepted") {
		t.Errorf("the operator is not warned: %v", err)
	}
}

func TestSentRowsAreDueAtEverLongerIntervals(t *testing.T) {
	t.Parallel()
	notify, _, d, id := rowIn(t, "sent")
	end(t, d, review.JobSucceeded)
	var looks []string
	var total, last, gap time.Duration
	for total < watch {
		if len(due(t, notify)) > 0 {
			looks, gap, last = append(looks, total.String()), max(gap, total-last), total
			testkit.NoError(t, notify.RecordCheck(t.Context(), id, true))
		}
		step := max(bounced/2, min(total/4, time.Hour))
		backdate(t, d, fmt.Sprint(step.Seconds(), " seconds"))
		total += step
	}
	if len(looks) < 4 || len(looks) > 12 {
		t.Errorf("looked at after %v", looks)
	}
	if gap > 25*time.Hour || last < watch-25*time.Hour { // servers bounce after five days
		t.Errorf("looked at after %v, too seldom for a late bounce", looks)
	}
}

func TestFailDelivery(t *testing.T) { // bounces come late (notification 8.1)
	t.Parallel()
	for state, want := range map[string]bool{"begun": true, "held": true, "sent": true, "failed": false, "waived": false} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			notify, operator, d, id := rowIn(t, state)
			end(t, d, review.JobSucceeded)
			seen := reread(t, notify, id)
			changed := must(notify.FailDelivery(t.Context(), seen, failure.RecipientRejected))(t)
			if changed != want || (len(trailOf(t, operator, id)) == 1) != want {
				t.Fatalf("changed %v, %d audit entries", changed, len(trailOf(t, operator, id)))
			}
			if row := reread(t, notify, id); want && (row.Status != review.DeliveryFailed || row.NotifiedAt != nil || row.Begun) {
				t.Errorf("row is %+v", row)
			}
			if changed, err := notify.FailDelivery(t.Context(), seen, failure.RecipientRejected); err != nil || changed {
				t.Errorf("the second time: %v, %v", changed, err)
			}
		})
	}
}

// A running review has counted the recipient as notified.
func TestSentRowOfARunningReviewIsLeftAlone(t *testing.T) {
	t.Parallel()
	notify, _, _, id := rowIn(t, "sent")
	seen := reread(t, notify, id)
	if changed, err := notify.FailDelivery(t.Context(), seen, failure.RecipientRejected); err != nil || changed {
		t.Errorf("failed: %v, %v", changed, err)
	}
	if status, err := notify.RequeueUnproven(t.Context(), seen); err != nil || status != "" {
		t.Errorf("requeued: %q, %v", status, err)
	}
}

func TestRequeueUnproven(t *testing.T) { // (notification 8.2, 8.3)
	t.Parallel()
	notify, operator, d, id := rowIn(t, "sent")
	end(t, d, review.JobSucceeded)
	for _, want := range []review.DeliveryStatus{review.DeliveryPending, review.DeliveryHeld} {
		status := must(notify.RequeueUnproven(t.Context(), reread(t, notify, id)))(t)
		row := reread(t, notify, id)
		if status != want || row.Status != want || row.NotifiedAt != nil || row.NotificationID != "" || !row.Begun {
			t.Fatalf("requeued as %q: %+v, want %s and to be looked up before it is sent", status, row, want)
		}
		testkit.NoError(t, notify.MarkSent(t.Context(), id, "m2", "accepted"))
	}
	if n := len(trailOf(t, operator, id)); n != 2 {
		t.Errorf("%d audit entries, want 2", n)
	}
	testkit.NoError(t, notify.RecordCheck(t.Context(), id, true))
	if status, err := notify.RequeueUnproven(t.Context(), reread(t, notify, id)); err != nil || status != "" {
		t.Errorf("a confirmed row was requeued: %q, %v", status, err)
	}
}

func TestRequeueUnprovenAtOnce(t *testing.T) { // runs may overlap
	t.Parallel()
	notify, operator, d, id := rowIn(t, "sent")
	end(t, d, review.JobSucceeded)
	seen := reread(t, notify, id)
	statuses := make([]review.DeliveryStatus, 4)
	var runs sync.WaitGroup
	for i := range statuses {
		runs.Go(func() {
			var err error
			if statuses[i], err = notify.RequeueUnproven(t.Context(), seen); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	slices.Sort(statuses)
	if !slices.Equal(statuses, []review.DeliveryStatus{"", "", "", review.DeliveryPending}) || len(trailOf(t, operator, id)) != 1 {
		t.Errorf("got %q, want one of them to requeue", statuses)
	}
}

func TestReleaseDelivery(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"held": true, "begun": false, "sent": false, "failed": false} {
		notify, _, _, id := rowIn(t, state)
		changed := must(notify.ReleaseDelivery(t.Context(), reread(t, notify, id)))(t)
		if row := reread(t, notify, id); changed != want || want && (row.Status != review.DeliveryPending || !row.Begun) {
			t.Errorf("%s: changed %v, row is %+v", state, changed, row)
		}
	}
}

func TestEarlierReport(t *testing.T) { // (notification 10.4)
	t.Parallel()
	books, d := bookkeeping(t)
	notify := d.Open(t, store.RoleNotify)
	succeed := func(v review.Version, report review.ArtifactRef) {
		t.Helper()
		must(books.FinishJob(t.Context(), version(v).Key, review.OutcomeClean, 0, report))(t)
	}
	want := func(of, wantVersion review.Version, wantReport review.ArtifactRef) {
		t.Helper()
		earlier := must(notify.EarlierReport(t.Context(), 4711, of))(t)
		if earlier.Version != wantVersion || earlier.Report != wantReport {
			t.Errorf("before version %d came %+v, want %d with %q", of, earlier, wantVersion, wantReport)
		}
	}
	open(t, books, version(1), "r")
	want(1, 0, "")
	succeed(1, "report:1")
	open(t, books, version(2), "r") // is never finished
	open(t, books, version(3), "r")
	succeed(3, "")
	open(t, books, version(4), "r")
	want(2, 1, "report:1")
	want(3, 1, "report:1")
	want(4, 3, "") // its report is not known
	// A version that ends while the next one runs is not its earlier version: the result
	// must not change between two attempts of the notify stage.
	succeed(2, "report:2")
	want(3, 1, "report:1")
}
