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

// outbox opens a new database with one running job as the notify stage.
func outbox(t *testing.T) (*store.DB, *storetest.Database) {
	t.Helper()
	db, d := bookkeeping(t)
	open(t, db, v1, "run1")
	return d.Open(t, store.RoleNotify), d
}

func prepare(t *testing.T, db *store.DB, addresses ...string) []review.Delivery {
	t.Helper()
	return must(db.PrepareDeliveries(t.Context(), 4711, 1, addresses))(t)
}

func reread(t *testing.T, db *store.DB, id int64) review.Delivery {
	t.Helper()
	return must(db.Delivery(t.Context(), id))(t)
}

func TestSaveRecipientsReplaces(t *testing.T) {
	t.Parallel()
	notify, d := outbox(t)
	fetch := d.Open(t, store.RoleFetch)
	first := []review.Recipient{{User: "zoe", Address: "zoe@corp.test", Role: review.RoleSubscriber}}
	second := []review.Recipient{
		{User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber},
		{User: "alice", Address: "alice@corp.test", Role: review.RoleSubscriber},
		{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor},
		{User: "gone", Role: review.RoleUnresolved},
	}
	open(t, d.Open(t, store.RoleBookkeeping), version(2), "run2")
	testkit.NoError(t, fetch.SaveRecipients(t.Context(), 4711, 2, first))
	for _, rs := range [][]review.Recipient{first, second, second} {
		testkit.NoError(t, fetch.SaveRecipients(t.Context(), 4711, 1, rs))
	}
	got := must(notify.Recipients(t.Context(), 4711, 1))(t)
	want := []review.Recipient{second[2], second[0], second[1], second[3]} // the author first, then as saved
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if other := must(notify.Recipients(t.Context(), 4711, 2))(t); !slices.Equal(other, first) {
		t.Errorf("the recipients of another version are %v", other)
	}
	wantClass(t, fetch.SaveRecipients(t.Context(), 9999, 1, first), failure.InvariantViolated) // a change without a job
}

// After 30 days no table holds an address or a path of the review, and a full restart still
// finds the row of a recipient who was notified (security 9.4.1) (notification 10.2).
func TestMetadataIsForgotten(t *testing.T) {
	t.Parallel()
	notify, d := outbox(t)
	retention := d.Open(t, store.RoleRetention)
	testkit.NoError(t, notify.PrepareChannels(t.Context(), 4711, 1, []review.Channel{review.ChannelWebhook}))
	rows := prepare(t, notify, "alice@corp.test", "bob@corp.test")
	begun := must(notify.BeginDelivery(t.Context(), rows[0]))(t)
	testkit.NoError(t, notify.MarkSent(t.Context(), begun.ID, "<1@corp.test>", "smtp"))
	_, err := notify.BeginDelivery(t.Context(), rows[1]) // in doubt
	testkit.NoError(t, err)
	exec(t, d.Conn(t), `
		insert into criticizer.findings (token, changelist_id, review_version, fingerprint, place, path, category, severity, accepted_at, accepted_by)
		values (repeat('a', 13), 4711, 1, 'f1', 'p', '//depot/a.go', 'security', 'high', null, null),
		       (repeat('b', 13), 4711, 1, 'f2', 'p', '//depot/b.go', 'security', 'high', now(), 'olga')`)
	wantForgotten := func(addresses, paths int) {
		t.Helper()
		if a, p, err := retention.ForgetMetadata(t.Context()); a != addresses || p != paths || err != nil {
			t.Errorf("forgot %d addresses and %d paths, %v; want %d and %d", a, p, err, addresses, paths)
		}
	}
	wantForgotten(0, 0)
	exec(t, d.Conn(t), `update criticizer.deliveries set created_at = now() - interval '31 days'`)
	exec(t, d.Conn(t), `update criticizer.findings set reported_at = now() - interval '31 days'`)
	wantForgotten(0, 1) // the job is in progress, and the row was notified today
	exec(t, d.Conn(t), `update criticizer.jobs set state = 'retryable_failed', finished_at = now();
		update criticizer.deliveries set last_attempt_at = created_at, notified_at = case when notified_at is not null then created_at end
		where attempts > 0`)
	wantForgotten(1, 0)
	wantForgotten(0, 0)
	left := query[string](t, d.Conn(t), `select string_agg(recipient, ' ' order by id) from criticizer.deliveries where recipient not like 'forgotten:%'`)
	if left != "webhook bob@corp.test" {
		t.Errorf("recipients %q are left, want the channel and the attempt in doubt", left)
	}
	if path := query[string](t, d.Conn(t), `select string_agg(path, ' ') from criticizer.findings`); path != " //depot/b.go" && path != "//depot/b.go " {
		t.Errorf("paths are %q, want that of the wrong finding", path)
	}

	rows = prepare(t, notify, "Alice@corp.test", "bob@corp.test", "carol@corp.test")
	if len(rows) != 4 || rows[0].ID != begun.ID || rows[0].Status != review.DeliverySent || rows[0].Key.Recipient != "alice@corp.test" {
		t.Errorf("rows of a restart are %+v, want alice's old row, sent", rows)
	}
}

func TestPrepareChannelsMakesOneRowPerChannel(t *testing.T) {
	t.Parallel()
	db, d := outbox(t)
	for range 2 {
		testkit.NoError(t, db.PrepareChannels(t.Context(), 4711, 1, []review.Channel{review.ChannelWebhook, review.ChannelSwarm}))
	}
	rows := prepare(t, db, "alice@corp.test")
	channels := []review.Channel{rows[0].Key.Channel(), rows[1].Key.Channel(), rows[2].Key.Channel()}
	if want := []review.Channel{review.ChannelMail, review.ChannelSwarm, review.ChannelWebhook}; len(rows) != 3 || !slices.Equal(channels, want) {
		t.Errorf("rows %+v, want one of each of %v", rows, want)
	}
	if stored := query[string](t, d.Conn(t), `select string_agg(channel, ' ' order by recipient) from criticizer.deliveries`); stored != "mail swarm webhook" {
		t.Errorf("stored channels are %s", stored)
	}
}

func TestPrepareDeliveriesMakesOneRowPerIntent(t *testing.T) { // (notification 6.3, 10.2)
	t.Parallel()
	db, _ := outbox(t)
	prepare(t, db, "Bob@Corp.test", "bob@corp.test", "alice@corp.test")
	rows := prepare(t, db, "BOB@corp.test", "carol@corp.test")
	var got []string
	for _, row := range rows {
		got = append(got, row.Key.Recipient)
		if row.Status != review.DeliveryPending || row.Attempts != 0 || row.Begun || row.Key.Changelist != 4711 || row.Key.Version != 1 {
			t.Errorf("new row is %+v", row)
		}
	}
	if want := []string{"alice@corp.test", "bob@corp.test", "carol@corp.test"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if rows := prepare(t, db); len(rows) != 3 {
		t.Errorf("without addresses: %d rows, want the 3 that exist", len(rows))
	}
}

func TestSendAndMark(t *testing.T) { // (notification 6.4)
	t.Parallel()
	db, d := outbox(t)
	row := prepare(t, db, "a@corp.test")[0]
	wantClass(t, db.MarkSent(t.Context(), row.ID, "", "accepted"), failure.InvariantViolated)
	wantClass(t, db.MarkSent(t.Context(), row.ID+1, "m1", "accepted"), failure.NotFound)
	row = must(db.BeginDelivery(t.Context(), row))(t)
	if !row.Begun || row.Attempts != 1 || row.LastAttemptAt == nil {
		t.Fatalf("begun row is %+v", row)
	}
	exec(t, d.Conn(t), `update criticizer.deliveries set created_at = now() - interval '1 day', last_attempt_at = now() - interval '1 hour'`)
	begun := query[time.Time](t, d.Conn(t), `select clock_timestamp()`)
	testkit.NoError(t, db.MarkSent(t.Context(), row.ID, "m1", "accepted"))
	sent := reread(t, db, row.ID)
	if at := sent.NotifiedAt; at == nil || at.Before(begun) || at.After(query[time.Time](t, d.Conn(t), `select clock_timestamp()`)) {
		t.Errorf("notified_at is %v, marked after %v", at, begun)
	}
	if sent.Status != review.DeliverySent || sent.NotificationID != "m1" || sent.NotifiedAt == nil || sent.Begun {
		t.Fatalf("sent row is %+v", sent)
	}
	testkit.NoError(t, db.MarkSent(t.Context(), row.ID, "m1", "journal"))
	if again := reread(t, db, row.ID); !again.NotifiedAt.Equal(*sent.NotifiedAt) {
		t.Error("marking again moved notified_at")
	}
	wantClass(t, db.MarkSent(t.Context(), row.ID, "m2", "accepted"), failure.InvariantViolated)
	_, err := db.BeginDelivery(t.Context(), sent)
	wantClass(t, err, failure.WriteConflict)
	wantClass(t, db.MarkDeliveryFailed(t.Context(), row, failure.RecipientRejected), failure.WriteConflict)
}

func TestBeginDeliveryAtOnce(t *testing.T) { // a worker believed dead may still be sending (notification 10.3)
	t.Parallel()
	db, _ := outbox(t)
	seen := prepare(t, db, "a@corp.test")[0]
	errs := make([]error, 4)
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() { _, errs[i] = db.BeginDelivery(t.Context(), seen) })
	}
	workers.Wait()
	began := 0
	for _, err := range errs {
		if err == nil {
			began++
			continue
		}
		wantClass(t, err, failure.WriteConflict)
	}
	if row := reread(t, db, seen.ID); began != 1 || row.Attempts != 1 {
		t.Errorf("%d workers began, the row counts %d attempts: want 1 and 1", began, row.Attempts)
	}
}

func TestAbandonDeliveryLeavesAnothersAttemptOpen(t *testing.T) {
	t.Parallel()
	db, _ := outbox(t)
	first := must(db.BeginDelivery(t.Context(), prepare(t, db, "a@corp.test")[0]))(t)
	testkit.NoError(t, db.AbandonDelivery(t.Context(), first))
	if row := reread(t, db, first.ID); row.Begun || row.Attempts != 1 {
		t.Fatalf("abandoned row is %+v", row)
	}
	must(db.BeginDelivery(t.Context(), first))(t)
	testkit.NoError(t, db.AbandonDelivery(t.Context(), first)) // late
	if row := reread(t, db, first.ID); !row.Begun {
		t.Error("the second attempt was closed by the first: it would be sent again without a look-up")
	}
}

// A permanent end is final but for evidence of acceptance. A late worker with a refusal,
// or without evidence, does not change an attempt that another worker has begun
// (notification 8.1, 8.2, 10.3).
func TestPermanentEndsOfADelivery(t *testing.T) {
	t.Parallel()
	for want, end := range map[review.DeliveryStatus]func(*store.DB, review.Delivery) error{
		review.DeliveryFailed: func(db *store.DB, seen review.Delivery) error {
			return db.MarkDeliveryFailed(t.Context(), seen, failure.RecipientRejected)
		},
		review.DeliveryHeld: func(db *store.DB, seen review.Delivery) error { return db.HoldDelivery(t.Context(), seen) },
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			db, d := outbox(t)
			rows := prepare(t, db, "a@corp.test", "b@corp.test")
			row := must(db.BeginDelivery(t.Context(), rows[0]))(t)
			testkit.NoError(t, end(db, row))
			testkit.NoError(t, end(db, row))
			if got := reread(t, db, row.ID); got.Status != want {
				t.Errorf("row is %s, want %s", got.Status, want)
			}
			_, err := db.BeginDelivery(t.Context(), row)
			wantClass(t, err, failure.WriteConflict)
			testkit.NoError(t, db.MarkSent(t.Context(), row.ID, "m1", "journal"))
			row.ID = 12345
			wantClass(t, end(db, row), failure.NotFound)

			first := must(db.BeginDelivery(t.Context(), rows[1]))(t)
			second := must(db.BeginDelivery(t.Context(), first))(t)
			wantClass(t, end(db, first), failure.WriteConflict)
			if row := reread(t, db, first.ID); row.Status != review.DeliveryPending || !row.Begun {
				t.Fatalf("row is %+v: another's attempt is in progress", row)
			}
			exec(t, d.Conn(t), `update criticizer.deliveries set begun = false`) // an operator's decision
			wantClass(t, end(db, second), failure.WriteConflict)
		})
	}
}

// A refusal of the complete message is recorded with the attempt and cleared with it.
func TestRefusalOfAnAttempt(t *testing.T) { // (notification 8.2)
	t.Parallel()
	db, _ := outbox(t)
	first := must(db.BeginDelivery(t.Context(), prepare(t, db, "a@corp.test")[0]))(t)
	testkit.NoError(t, db.RecordRefusal(t.Context(), first, failure.RecipientRejected))
	row := reread(t, db, first.ID)
	if row.Refused != string(failure.RecipientRejected) || !row.Begun || row.Status != review.DeliveryPending {
		t.Fatalf("refused row is %+v", row)
	}
	second := must(db.BeginDelivery(t.Context(), row))(t)
	testkit.NoError(t, db.RecordRefusal(t.Context(), first, failure.RecipientRejected)) // late
	if row := reread(t, db, first.ID); row.Refused != "" {
		t.Errorf("the second attempt is refused as %s, as the first was", row.Refused)
	}
	testkit.NoError(t, db.RecordRefusal(t.Context(), second, failure.UpstreamUnavailable))
	testkit.NoError(t, db.AbandonDelivery(t.Context(), second))
	if row := reread(t, db, first.ID); row.Refused != "" || row.Begun {
		t.Errorf("abandoned row is %+v", row)
	}
}

// A purge deletes what belongs to an old review that succeeded, but not the gate against a
// second review, nor what an operator has accepted.
func TestPurgeReviews(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	conn, retention, books := d.Conn(t), d.Open(t, store.RoleRetention), d.Open(t, store.RoleBookkeeping)
	exec(t, conn, goodRows)
	exec(t, conn, `update criticizer.findings set accepted_by = 'olga', accepted_at = now() where fingerprint = 'f1'`)
	wantPurged := func(why string, ttl time.Duration, want int) {
		t.Helper()
		if n, err := retention.PurgeReviews(t.Context(), ttl); err != nil || n != want {
			t.Errorf("%s: purged %d reviews, %v; want %d", why, n, err, want)
		}
	}
	exec(t, conn, `update criticizer.jobs set state = 'retryable_failed', finished_at = now() - interval '400 days'`)
	wantPurged("dead-lettered", time.Hour, 0)
	exec(t, conn, `update criticizer.jobs set state = 'succeeded', outcome = 'clean', finished_at = now() - interval '29 days'`)
	wantPurged("younger than the shortest time", time.Hour, 0)
	exec(t, conn, `update criticizer.jobs set finished_at = now() - interval '100 days'`)
	wantPurged("younger than the configured time", 101*24*time.Hour, 0)
	wantPurged("older", 99*24*time.Hour, 1)
	wantPurged("purged before", 99*24*time.Hour, 0)
	left := query[string](t, conn, `
		select concat_ws(' ', (select count(*) from criticizer.recipients), (select count(*) from criticizer.deliveries), (select count(*) from criticizer.dead_letters),
			(select count(*) from criticizer.replays), (select count(*) from criticizer.replay_requests), (select count(*) from criticizer.pages),
			(select string_agg(fingerprint, ',') from criticizer.findings))`)
	if left != "0 0 0 0 0 0 f1" {
		t.Errorf("left are %s, want nothing but the accepted finding", left)
	}
	opening := open(t, books, review.Request{Changelist: 1, Version: 1, ServerID: "s", Key: "k"}, "r2")
	if opening.Decision != review.DecisionDuplicate {
		t.Errorf("a second review is decided as %s, want a duplicate", opening.Decision)
	}
}

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
		{"sent long ago, never confirmed", "sent", "29 days", review.JobSucceeded, true},
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
	if status, err := notify.RequeueUnproven(t.Context(), seen, false); err != nil || status != "" {
		t.Errorf("requeued: %q, %v", status, err)
	}
}

func TestRequeueUnproven(t *testing.T) { // (notification 8.2, 8.3)
	t.Parallel()
	notify, operator, d, id := rowIn(t, "sent")
	end(t, d, review.JobSucceeded)
	for _, want := range []review.DeliveryStatus{review.DeliveryPending, review.DeliveryHeld} {
		status := must(notify.RequeueUnproven(t.Context(), reread(t, notify, id), false))(t)
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
	if status, err := notify.RequeueUnproven(t.Context(), reread(t, notify, id), false); err != nil || status != "" {
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
			if statuses[i], err = notify.RequeueUnproven(t.Context(), seen, false); err != nil {
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
		finishAs(t, books, version(v), review.OutcomeClean, 0, report)
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
	succeed(3, "report:3")
	open(t, books, version(4), "r")
	want(2, 1, "report:1")
	want(3, 1, "report:1")
	want(4, 3, "report:3")
	// A version that ends while the next one runs is not its earlier version: the result
	// must not change between two attempts of the notify stage.
	succeed(2, "report:2")
	want(3, 1, "report:1")
}

// An attempt is a row: its first result stays, unless evidence shows that the message was
// accepted (notification 8.1).
func TestAttemptsAreRows(t *testing.T) {
	t.Parallel()
	notify, operator, _, id := rowIn(t, "new")
	refused := review.Attempt{Result: string(failure.UpstreamUnavailable), Answer: "451 4.3.0", Detail: "it asks to try again later"}
	first := must(notify.BeginDelivery(t.Context(), reread(t, notify, id)))(t)
	testkit.NoError(t, notify.RecordAttempt(t.Context(), first, refused))
	testkit.NoError(t, notify.RecordAttempt(t.Context(), first, review.Attempt{Result: string(failure.DeliveryAmbiguous)}))
	testkit.NoError(t, notify.AbandonDelivery(t.Context(), first))
	second := must(notify.BeginDelivery(t.Context(), reread(t, notify, id)))(t)
	testkit.NoError(t, notify.RecordAttempt(t.Context(), second, review.Attempt{Result: string(failure.DeliveryAmbiguous)}))
	testkit.NoError(t, notify.MarkSent(t.Context(), id, "m1", "journal"))
	got := must(operator.Attempts(t.Context(), id))(t)
	if len(got) != 2 || got[0].Attempt != 1 || (review.Attempt{Result: got[0].Result, Answer: got[0].Answer, Detail: got[0].Detail}) != refused || got[0].EndedAt == nil || got[0].AcceptedAt != nil {
		t.Fatalf("attempts are %+v", got)
	}
	if got[1].Result != "accepted" || got[1].Evidence != "journal" || got[1].AcceptedAt != nil { // a source does not say when
		t.Errorf("the second attempt is %+v", got[1])
	}
	_, operator, _, id = rowIn(t, "sent")
	if got := must(operator.Attempts(t.Context(), id))(t); len(got) != 1 || got[0].AcceptedAt == nil || got[0].Evidence != "accepted" {
		t.Errorf("attempts of a row that was accepted: %+v", got)
	}
	_, operator, _, id = rowIn(t, "begun")
	if got := must(operator.Attempts(t.Context(), id))(t); len(got) != 1 || got[0].EndedAt != nil || got[0].Result != "" {
		t.Errorf("attempts of a row whose worker died: %+v, %v", got, notify)
	}
}

// An address that a server refused stays known until an operator sends to it again.
func TestBouncedAddress(t *testing.T) {
	t.Parallel()
	notify, operator, d, id := rowIn(t, "begun")
	known := func() int {
		return len(must(notify.Bounced(t.Context(), []string{"alice@corp.test", "bob@corp.test"}))(t))
	}
	row := reread(t, notify, id)
	testkit.NoError(t, notify.MarkDeliveryFailed(t.Context(), row, failure.RecipientRejected))
	if known() != 0 { // a failure of ours, such as an address outside of the allowed domains
		t.Error("an address that no server refused bounced")
	}
	exec(t, d.Conn(t), `update criticizer.deliveries set status = 'pending', begun = true, error_class = null`)
	row.Bounced = true
	testkit.NoError(t, notify.MarkDeliveryFailed(t.Context(), row, failure.RecipientRejected))
	if known() != 1 {
		t.Error("the address is not known as bounced")
	}
	testkit.NoError(t, operator.WaiveDelivery(t.Context(), id, "olga", "INC-1"))
	if known() != 1 {
		t.Error("to waive a delivery does not say that the address works")
	}
	retention := d.Open(t, store.RoleRetention)
	end(t, d, review.JobSucceeded)
	exec(t, d.Conn(t), `update criticizer.jobs set finished_at = now() - interval '100 days';
		update criticizer.deliveries set created_at = now() - interval '100 days', last_attempt_at = now() - interval '100 days'`)
	forgotten, _, err := retention.ForgetMetadata(t.Context())
	if testkit.NoError(t, err); forgotten != 0 || known() != 1 {
		t.Errorf("after 30 days %d addresses are forgotten, %d bounced are known", forgotten, known())
	}
	exec(t, d.Conn(t), `insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('later', 4712, 1, 's', 'r');
		insert into criticizer.deliveries (changelist_id, review_version, recipient, status, error_class, bounced_at) values (4712, 1, 'alice@corp.test', 'failed', 'RECIPIENT_REJECTED', now() + interval '1 second')`)
	forgotten, _, err = retention.ForgetMetadata(t.Context())
	if testkit.NoError(t, err); forgotten != 1 || known() != 1 {
		t.Errorf("beside a newer bounce %d addresses are forgotten, %d bounced are known", forgotten, known())
	}
	exec(t, d.Conn(t), `update criticizer.jobs set state = 'succeeded', outcome = 'clean', finished_at = now() - interval '100 days' where changelist_id = 4712`)
	if n := must(retention.PurgeReviews(t.Context(), 90*24*time.Hour))(t); n != 2 || known() != 1 {
		t.Errorf("a purge of %d reviews leaves %d bounced addresses, want 2 and 1", n, known())
	}
	id = query[int64](t, d.Conn(t), `select id from criticizer.deliveries`)
	testkit.NoError(t, operator.ResendDelivery(t.Context(), id, 0, "olga", "INC-2"))
	if known() != 0 {
		t.Error("the operator's decision is ignored")
	}
	notify, _, d, id = rowIn(t, "sent")
	end(t, d, review.JobSucceeded)
	if changed, err := notify.FailDelivery(t.Context(), reread(t, notify, id), failure.ConfigInvalid); err != nil || !changed || known() != 0 {
		t.Errorf("a bounce for a reason of ours: %t, %v, %d", changed, err, known())
	}
}

// Who is notified, and why others are not, is stored before anything is sent.
func TestRecipientDecisions(t *testing.T) {
	t.Parallel()
	notify, d := outbox(t)
	people := []review.Recipient{
		{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor}, {User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber},
	}
	testkit.NoError(t, d.Open(t, store.RoleFetch).SaveRecipients(t.Context(), 4711, 1, people))
	whys := func() (list []string) {
		for _, r := range must(d.Open(t, store.RoleOperator).RecipientDecisions(t.Context(), 4711))(t) {
			why := "undecided"
			if r.Why != nil {
				why = *r.Why
			}
			list = append(list, r.User+": "+why)
		}
		return list
	}
	for _, tc := range []struct {
		excluded []review.RecipientDecision
		want     []string
	}{
		{[]review.RecipientDecision{{Recipient: people[1], Why: "opted out"}}, []string{"alice: ", "bob: opted out"}},
		{nil, []string{"alice: ", "bob: "}}, // a replay decides again
	} {
		if got := whys(); tc.excluded != nil && !slices.Equal(got, []string{"alice: undecided", "bob: undecided"}) {
			t.Errorf("before: %q", got)
		}
		testkit.NoError(t, notify.DecideRecipients(t.Context(), 4711, 1, tc.excluded))
		if got := whys(); !slices.Equal(got, tc.want) {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// A notice is begun once per dead letter of an early stage that is open for the time, and never
// while a replay runs.
func TestBeginNotice(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	notify, conn := d.Open(t, store.RoleNotify), d.Conn(t)
	open(t, books, v1, "run1")
	begin := func() (review.Notice, bool) {
		n, ok, err := notify.BeginNotice(t.Context(), 4*time.Hour)
		testkit.NoError(t, err)
		return n, ok
	}
	older := func() {
		exec(t, conn, `update criticizer.dead_letters set recorded_at = recorded_at - interval '5 hours'`)
		exec(t, conn, `update criticizer.notices set checked_at = checked_at - interval '5 hours'`)
	}
	die(t, books, "run1", failure.UpstreamUnavailable)
	if n, ok := begin(); ok {
		t.Errorf("at once: %+v", n)
	}
	older()
	n, ok := begin()
	if !ok || n.Changelist != 4711 || n.Version != 1 || n.Stage != "llm" || n.Class != string(failure.UpstreamUnavailable) || n.Again {
		t.Fatalf("%+v, %t", n, ok)
	}
	if n, ok := begin(); ok {
		t.Errorf("while it is sent: %+v", n)
	}
	older()
	testkit.NoError(t, notify.PostponeNotice(t.Context(), n, "is not known"))
	if again, ok := begin(); !ok || again.Again {
		t.Errorf("after it was postponed: %+v, %t", again, ok)
	}
	exec(t, conn, `update criticizer.notices set begun_at = now() - interval '9 hours'`)
	must(notify.MarkNotice(t.Context(), n, true))(t)
	older()
	if again, ok := begin(); !ok || !again.Again || time.Since(again.Begun) > time.Hour {
		t.Errorf("after its worker died: %+v, %t, want the begin of the last attempt", again, ok)
	}
	must(notify.MarkNotice(t.Context(), n, false))(t)
	older()
	if again, ok := begin(); !ok || again.Again {
		t.Errorf("after an attempt that was certainly not accepted: %+v, %t", again, ok)
	}
	older()
	replay(t, books, "run1", "run2")
	if n, ok := begin(); ok {
		t.Errorf("while a replay runs: %+v", n)
	}
	die(t, books, "run2", failure.UpstreamUnavailable)
	older()
	if _, ok := begin(); !ok {
		t.Error("not begun after the replay failed")
	}
	testkit.NoError(t, notify.EndNotice(t.Context(), n, "m1", ""))
	older()
	if n, ok := begin(); ok {
		t.Errorf("after it was sent: %+v", n)
	}
	if got := must(d.Open(t, store.RoleOperator).Notices(t.Context(), 4711))(t); len(got) != 1 || got[0].NotifiedAt == nil {
		t.Errorf("the operator reads %+v", got)
	}
	exec(t, conn, `delete from criticizer.notices`)
	if must(notify.MarkNotice(t.Context(), n, true))(t) {
		t.Error("a forgotten notice is marked")
	}
}

// Old notices that cannot be sent do not keep newer ones from being sent.
func TestNoticesTakeTurns(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	notify, conn := d.Open(t, store.RoleNotify), d.Conn(t)
	open(t, books, v1, "run1")
	die(t, books, "run1", failure.UpstreamUnavailable)
	exec(t, conn, `insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, state, finished_at)
			values ('k2', 4712, 1, 's', 'r', 'retryable_failed', now());
		insert into criticizer.dead_letters (workflow_id, run_id, changelist_id, review_version, stage, error_class, payload, first_failure_at, last_failure_at)
			select 'k2', 'r', 4712, 1, stage, error_class, payload, first_failure_at, last_failure_at from criticizer.dead_letters;
		update criticizer.dead_letters set recorded_at = now() - interval '5 hours'`)
	var got []review.Changelist
	for range 3 {
		n, ok, err := notify.BeginNotice(t.Context(), 4*time.Hour)
		testkit.NoError(t, err)
		if ok {
			got = append(got, n.Changelist)
		}
		exec(t, conn, `update criticizer.notices set checked_at = checked_at - interval '1 hour'`)
	}
	if !slices.Equal(got, []review.Changelist{4711, 4712, 4711}) {
		t.Errorf("begun for %v", got)
	}
}

// A restored database may have lost a notice or its result: it is looked up before it is sent.
func TestNoticeAfterARestore(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		books, d := bookkeeping(t)
		notify, conn := d.Open(t, store.RoleNotify), d.Conn(t)
		open(t, books, v1, "run1")
		die(t, books, "run1", failure.UpstreamUnavailable)
		exec(t, conn, `update criticizer.dead_letters set recorded_at = now() - interval '5 hours'`)
		if known {
			_, ok, err := notify.BeginNotice(t.Context(), 4*time.Hour)
			testkit.NoError(t, err)
			if !ok {
				t.Fatal("not begun")
			}
			exec(t, conn, `update criticizer.notices set checked_at = checked_at - interval '1 hour'`)
		}
		exec(t, conn, `select criticizer.restored(now() - interval '1 day', 4711)`)
		n, ok, err := notify.BeginNotice(t.Context(), 4*time.Hour)
		testkit.NoError(t, err)
		if age := time.Since(n.Begun); !ok || !n.Again || age < 23*time.Hour || age > 25*time.Hour {
			t.Errorf("known %t: %+v, %t, want a look-up since the backup", known, n, ok)
		}
	}
}
