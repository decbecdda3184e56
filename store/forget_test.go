package store_test

import (
	"encoding/binary"
	"errors"
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

// forget forgets changelist 4711, and checks why it is refused, if it is.
func forget(t *testing.T, d *storetest.Database, want store.ForgetRefusal) store.Forgotten {
	t.Helper()
	gone, err := d.Open(t, store.RoleOperator).ForgetChangelist(t.Context(), 4711, "olga", "PRIV-3")
	if got, _ := errors.AsType[store.ForgetRefusal](err); got != want || (err != nil) != (want != "") {
		t.Fatalf("forget is refused: %v, want %q", err, want)
	}
	return gone
}

// Artifacts are deleted, whether they have just been stored or await the retention schedule.
func TestForgetDeletesExpiredArtifacts(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	open(t, books, v1, "run1")
	finish(t, books, v1)
	body := binary.BigEndian.AppendUint64([]byte{1}, uint64(v1.Changelist)) // the header
	writer := d.Open(t, store.RoleFetch).Blobs(review.NamespaceRaw)
	testkit.NoError(t, writer.PutBlob(t.Context(), id, body, 7*day))
	age(t, d, review.NamespaceRaw, 10*day)
	testkit.NoError(t, writer.PutBlob(t.Context(), id[1:]+"b", body, 7*day))
	if gone := forget(t, d, ""); gone.Artifacts != 2 {
		t.Errorf("forgot %+v, want 2 artifacts", gone)
	}
}

// A mail in doubt stops it until an operator has settled the delivery.
func TestForgetAfterADeliveryIsSettled(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(operator *store.DB, id int64) error{
		"waived": func(operator *store.DB, id int64) error {
			return operator.WaiveDelivery(t.Context(), id, "olga", "INC-1")
		},
		"resent": func(operator *store.DB, id int64) error {
			return operator.ResendDelivery(t.Context(), id, 0, "olga", "INC-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notify, d := outbox(t)
			begun := must(notify.BeginDelivery(t.Context(), prepare(t, notify, "alice@corp.test")[0]))(t)
			end(t, d, review.JobRetryableFailed)
			forget(t, d, store.ForgetDeliveryInDoubt)
			testkit.NoError(t, notify.HoldDelivery(t.Context(), begun))
			forget(t, d, store.ForgetDeliveryInDoubt)
			testkit.NoError(t, settle(d.Open(t, store.RoleOperator), begun.ID))
			if gone := forget(t, d, ""); gone.Deliveries != 1 || query[bool](t, d.Conn(t), `select begun from criticizer.deliveries`) {
				t.Errorf("forgot %+v, or the delivery is still in doubt", gone)
			}
		})
	}
}

// A notice in doubt is looked up only while its dead letter is open: its doubt ends with time.
func TestForgetAfterANotice(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	open(t, books, v1, "run1")
	die(t, books, "run1", failure.UpstreamUnavailable)
	exec(t, d.Conn(t), `insert into criticizer.notices (changelist_id, review_version, begun_at) values (4711, 1, now() - interval '6 days')`)
	forget(t, d, store.ForgetNoticeInDoubt)
	exec(t, d.Conn(t), `update criticizer.notices set begun_at = begun_at - interval '1 day'`)
	forget(t, d, "")
}

// A shelf that a submit renumbered has reviews under two numbers: each names the other until both
// are forgotten.
func TestForgetNamesTheOtherNumber(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	fetch, operator := d.Open(t, store.RoleFetch), d.Open(t, store.RoleOperator)
	shelf := reserve(t, books, "a")
	must(fetch.RecordContent(t.Context(), 4711, 1, review.Content{Digest: "x", Shelved: true}))(t)
	finishAs(t, books, shelf, review.OutcomeFindings, 1, "report:1")
	for cl, digest := range map[review.Changelist]string{4800: "x", 4900: "other content"} {
		submit := of(cl)
		open(t, books, submit, "run")
		must(fetch.RecordContent(t.Context(), cl, 1, review.Content{Digest: digest, OldNumber: 4711}))(t)
		if digest == "x" {
			must(d.Open(t, store.RoleNotify).AdoptOutcome(t.Context(), submit.Owner(), "report:1"))(t)
			testkit.NoError(t, errOf(books.FinishJob(t.Context(), submit.Key, "report:1")))
		} else {
			finish(t, books, submit)
		}
	}
	for _, step := range []struct {
		forget  review.Changelist
		related []review.Changelist
	}{
		{4800, []review.Changelist{4711}},
		{4800, []review.Changelist{4711}}, // the adopted report names it
		{4711, []review.Changelist{4900}},
		{4900, nil},
	} {
		gone := must(operator.ForgetChangelist(t.Context(), step.forget, "olga", "PRIV-3"))(t)
		if !slices.Equal(gone.Related, step.related) {
			t.Errorf("forget %d names %v, want %v", step.forget, gone.Related, step.related)
		}
	}
}

// A notice is begun from its dead letter to its job: the opposite order would be a deadlock.
func TestForgetWhileANoticeBegins(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	open(t, books, v1, "run1")
	die(t, books, "run1", failure.UpstreamUnavailable)
	conn := d.Conn(t)
	exec(t, conn, `begin; select from criticizer.dead_letters for update`)
	operator, done := d.Open(t, store.RoleOperator), make(chan error, 1)
	go func() { done <- errOf(operator.ForgetChangelist(t.Context(), 4711, "olga", "PRIV-3")) }()
	watch := d.Conn(t)
	testkit.Eventually(t, "forget waits for the letter", func() bool {
		return query[bool](t, watch, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
	})
	exec(t, conn, `insert into criticizer.notices (changelist_id, review_version) values (4711, 1); commit`)
	select {
	case err := <-done:
		testkit.NoError(t, err)
	case <-time.After(time.Minute):
		t.Error("forget waits for ever")
	}
}

// What a refused request left can be forgotten, too, though it has no review. An address that is
// forgotten cannot be sent to.
func TestForgetARefusedRequest(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	forget(t, d, store.ForgetNoReview)
	must(books.RecordDeadLetter(t.Context(), v1, "run1", failure.DeadLetter{ErrorClass: failure.InputInvalid, Stage: string(review.StageFetch)}))(t)
	forget(t, d, "")
	if letters := must(d.Open(t, store.RoleOperator).DeadLetters(t.Context(), store.DeadLetterFilter{}))(t); len(letters) != 0 {
		t.Errorf("left are %+v", letters)
	}
}

func TestForgottenDeliveryIsNotResent(t *testing.T) {
	t.Parallel()
	notify, d := outbox(t)
	id := prepare(t, notify, "alice@corp.test")[0].ID
	end(t, d, review.JobRetryableFailed)
	forget(t, d, "")
	err := d.Open(t, store.RoleOperator).ResendDelivery(t.Context(), id, 0, "olga", "INC-1")
	if failure.ClassOf(err) != failure.WriteConflict || !strings.Contains(err.Error(), "its address was forgotten") {
		t.Errorf("resent: %v", err)
	}
}
