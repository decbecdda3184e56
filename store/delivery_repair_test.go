package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// rowIn returns an outbox with one row in the given state, opened as the notify stage and
// as operator.
func rowIn(t *testing.T, state string) (notify, operator *store.DB, d *storetest.Database, id int64) {
	t.Helper()
	notify, d = outbox(t)
	row := prepare(t, notify, "alice@corp.test")[0]
	begin := func() {
		row = must(notify.BeginDelivery(t.Context(), row))(t)
	}
	switch state {
	case "new":
	case "begun":
		begin()
	case "sent":
		begin()
		testkit.NoError(t, notify.MarkSent(t.Context(), row.ID, "m1", "accepted"))
	case "failed":
		begin()
		testkit.NoError(t, notify.MarkDeliveryFailed(t.Context(), row, failure.RecipientRejected))
	case "held":
		begin()
		testkit.NoError(t, notify.HoldDelivery(t.Context(), row))
	case "waived", "waived in progress":
		exec(t, d.Conn(t), `update criticizer.deliveries set status = 'waived'`)
		if state == "waived" {
			exec(t, d.Conn(t), `update criticizer.jobs set state = 'retryable_failed', finished_at = now()`)
		}
	default:
		t.Fatalf("no such state: %s", state)
	}
	return notify, d.Open(t, store.RoleOperator), d, row.ID
}

// An operator may decide about a refused recipient, and never so that a mail is sent
// twice (notification 8.1).
func TestOperatorDecidesAboutADelivery(t *testing.T) {
	t.Parallel()
	waive := func(t *testing.T, db *store.DB, id int64) error {
		return db.WaiveDelivery(t.Context(), id, "olga@desk", "INC-1")
	}
	resend := func(t *testing.T, db *store.DB, id int64) error {
		return db.ResendDelivery(t.Context(), id, 0, "olga@desk", "INC-1")
	}
	readdress := func(t *testing.T, db *store.DB, id int64) error {
		_, err := db.ReaddressDelivery(t.Context(), id, "Alicia@corp.test", "olga@desk", "INC-1")
		return err
	}
	for _, tc := range []struct {
		name   string
		state  string
		decide func(*testing.T, *store.DB, int64) error
		want   review.DeliveryStatus // empty if the decision is refused
	}{
		{"a failed row is waived", "failed", waive, review.DeliveryWaived},
		{"a held row is waived", "held", waive, review.DeliveryWaived},
		{"an unsent row is waived", "new", waive, review.DeliveryWaived},
		{"a sent row is not waived", "sent", waive, ""},
		{"a waived row is not waived again", "waived", waive, ""},
		{"a failed row is sent again", "failed", resend, review.DeliveryPending},
		{"a held row is sent again", "held", resend, review.DeliveryPending},
		{"a waived row is sent after all", "waived", resend, review.DeliveryPending},
		{"a waived row of a review in progress is not sent", "waived in progress", resend, ""},
		{"a sent row is not sent again", "sent", resend, ""},
		{"an unsent row is sent anyway", "new", resend, ""},
		{"a row that may be being sent is left alone", "begun", resend, ""},
		{"a failed row is readdressed", "failed", readdress, review.DeliveryWaived},
		{"an unsent row is readdressed", "new", readdress, review.DeliveryWaived},
		{"a held row is not readdressed", "held", readdress, ""},
		{"a sent row is not readdressed", "sent", readdress, ""},
		{"a row that may be being sent is not readdressed", "begun", readdress, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			notify, operator, _, id := rowIn(t, tc.state)
			before := reread(t, notify, id)
			err := tc.decide(t, operator, id)
			after, trail := reread(t, notify, id), trailOf(t, operator, id)
			if tc.want == "" {
				wantClass(t, err, failure.WriteConflict)
				if after.Status != before.Status || after.Begun != before.Begun || len(trail) != 0 {
					t.Errorf("a refused decision left %+v and %d audit entries", after, len(trail))
				}
				return
			}
			testkit.NoError(t, err)
			if after.Status != tc.want {
				t.Errorf("row is %s, want %s", after.Status, tc.want)
			}
			if len(trail) != 1 || trail[0].Claimed != "olga@desk" {
				t.Errorf("audit log has %+v, want who decided", trail)
			}
			wantClass(t, tc.decide(t, operator, id), failure.WriteConflict)
		})
	}
}

func trailOf(t *testing.T, db *store.DB, id int64) []store.AuditEntry {
	t.Helper()
	return must(db.DeliveryTrail(t.Context(), id))(t)
}

func TestDecisionAboutNoDelivery(t *testing.T) {
	t.Parallel()
	_, db, _, _ := rowIn(t, "failed")
	for _, id := range []int64{0, -1, 4711} {
		wantClass(t, db.WaiveDelivery(t.Context(), id, "olga", "INC-1"), failure.NotFound)
		wantClass(t, db.ResendDelivery(t.Context(), id, 0, "olga", "INC-1"), failure.NotFound)
		_, err := db.ReaddressDelivery(t.Context(), id, "a@corp.test", "olga", "INC-1")
		wantClass(t, err, failure.NotFound)
		_, err = db.FindDelivery(t.Context(), id)
		wantClass(t, err, failure.NotFound)
	}
}

// A worker that is believed dead may still send the mail, even if only an operator can
// decide about the row (notification 10.3).
func TestResendWaitsForTheAttempt(t *testing.T) {
	t.Parallel()
	const settle = 10 * time.Minute
	for _, state := range []string{"held", "begun"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			notify, operator, d, id := rowIn(t, state)
			end(t, d, review.JobRetryableFailed)
			backdate(t, d, "9 minutes")
			err := operator.ResendDelivery(t.Context(), id, settle, "olga", "INC-1")
			wantClass(t, err, failure.WriteConflict)
			if !strings.Contains(err.Error(), "may have been accepted") {
				t.Errorf("the operator is not warned: %v", err)
			}
			if row := reread(t, notify, id); !row.Begun {
				t.Fatalf("row is %+v: the next attempt would not look it up", row)
			}
			backdate(t, d, "2 minutes")
			testkit.NoError(t, operator.ResendDelivery(t.Context(), id, settle, "olga", "INC-1"))
			if row := reread(t, notify, id); row.Begun || row.Status != review.DeliveryPending {
				t.Errorf("row is %+v: the operator's statement was not recorded", row)
			}
			wantClass(t, operator.ResendDelivery(t.Context(), id, settle, "olga", "INC-1"), failure.WriteConflict) // twice
		})
	}
}

func TestReaddressMakesARowOfItsOwn(t *testing.T) { // (notification 8.1, 10.2)
	t.Parallel()
	notify, operator, _, id := rowIn(t, "failed")
	newID := must(operator.ReaddressDelivery(t.Context(), id, "Alicia@Corp.test", "olga", "INC-1"))(t)
	if row := reread(t, notify, newID); row.Key.Recipient != "alicia@corp.test" || row.Status != review.DeliveryPending || row.Key.Version != 1 {
		t.Errorf("new row is %+v", row)
	}
	if row := reread(t, notify, id); row.Key.Recipient != "alice@corp.test" || row.Attempts != 1 {
		t.Errorf("old row is %+v, want its log kept", row)
	}
	if n := len(trailOf(t, operator, newID)); n != 1 {
		t.Errorf("the new row has %d audit entries, want where it comes from", n)
	}
}

func TestReaddressToAnotherRecipientIsRefused(t *testing.T) { // one intent, one row (notification 10.2)
	t.Parallel()
	notify, operator, _, id := rowIn(t, "failed")
	prepare(t, notify, "bob@corp.test")
	_, err := operator.ReaddressDelivery(t.Context(), id, "BOB@corp.test", "olga", "INC-1")
	wantClass(t, err, failure.WriteConflict)
	if row := reread(t, notify, id); row.Status != review.DeliveryFailed {
		t.Errorf("row is %s, want it as it was", row.Status)
	}
}

func TestDeliveriesAreFiltered(t *testing.T) {
	t.Parallel()
	notify, operator, d, id := rowIn(t, "failed")
	prepare(t, notify, "bob@corp.test")
	for _, req := range []review.Request{of(9), version(2)} {
		open(t, d.Open(t, store.RoleBookkeeping), req, "run1")
		must(notify.PrepareDeliveries(t.Context(), req.Changelist, req.Version, []string{"zoe@corp.test"}))(t)
	}
	all := []string{"4711 v2 zoe", "4711 v1 alice", "4711 v1 bob", "9 v1 zoe"} // the newest first
	for name, tc := range map[string]struct {
		filter store.DeliveryFilter
		want   []string
	}{
		"everything":         {store.DeliveryFilter{}, all},
		"its id":             {store.DeliveryFilter{ID: id}, all[1:2]},
		"its changelist":     {store.DeliveryFilter{Changelist: 4711}, all[:3]},
		"another changelist": {store.DeliveryFilter{Changelist: 4712}, nil},
		"its status":         {store.DeliveryFilter{Status: review.DeliveryFailed}, all[1:2]},
		"another status":     {store.DeliveryFilter{Status: review.DeliveryHeld}, nil},
		"no more than asked": {store.DeliveryFilter{Limit: 1}, all[:1]},
	} {
		var got []string
		for _, e := range must(operator.FindDeliveries(t.Context(), tc.filter))(t) {
			got = append(got, fmt.Sprintf("%d v%d %s", e.Changelist, e.Version, strings.TrimSuffix(e.Recipient, "@corp.test")))
			if e.JobState != review.JobInProgress || e.WorkflowID != review.DefaultKey("p4", e.Changelist, e.Version) {
				t.Errorf("%s: row %d belongs to %q, %s", name, e.ID, e.WorkflowID, e.JobState)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
