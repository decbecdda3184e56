package store_test

import (
	"slices"
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

func TestRecipientsAreForgottenWithTheReport(t *testing.T) { // (security 9.4.1)
	t.Parallel()
	notify, d := outbox(t)
	retention := d.Open(t, store.RoleRetention)
	alice := []review.Recipient{{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor}}
	testkit.NoError(t, d.Open(t, store.RoleFetch).SaveRecipients(t.Context(), 4711, 1, alice))
	if n, err := retention.DeleteOldRecipients(t.Context()); err != nil || n != 0 {
		t.Fatalf("forgot %d fresh recipients, %v", n, err)
	}
	exec(t, d.Conn(t), `update criticizer.recipients set saved_at = now() - interval '30 days 1 second'`)
	if n, err := retention.DeleteOldRecipients(t.Context()); err != nil || n != 1 {
		t.Fatalf("forgot %d recipients, %v; want 1", n, err)
	}
	if left, err := notify.Recipients(t.Context(), 4711, 1); err != nil || len(left) != 0 {
		t.Errorf("%d recipients are left, %v", len(left), err)
	}
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
		insert into criticizer.findings (token, changelist_id, review_version, fingerprint, path, category, severity, opinion, said_at, said_by)
		values (repeat('a', 13), 4711, 1, 'f1', '//depot/a.go', 'security', 'high', null, null, null),
		       (repeat('b', 13), 4711, 1, 'f2', '//depot/b.go', 'security', 'high', 'wrong', now(), 'olga')`)
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
// second review, nor what people said.
func TestPurgeReviews(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	conn, retention, books := d.Conn(t), d.Open(t, store.RoleRetention), d.Open(t, store.RoleBookkeeping)
	exec(t, conn, goodRows)
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
		t.Errorf("left are %s, want nothing but the finding with an opinion", left)
	}
	opening := open(t, books, review.Request{Changelist: 1, Version: 1, ServerID: "s", Key: "k"}, "r2")
	if opening.Decision != review.DecisionDuplicate {
		t.Errorf("a second review is decided as %s, want a duplicate", opening.Decision)
	}
}
