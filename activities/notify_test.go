package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

var request = review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}

const alice, bob, carol = "alice@corp.test", "bob@corp.test", "carol@corp.test"

// mailing is the notify stage over a database and a fake of the mail server, with a report
// waiting to be sent to alice and bob.
type mailing struct {
	fakes *activitiestest.Fakes
	db    activitiestest.Database
	env   *testsuite.TestActivityEnvironment
	stage *activities.Notifier
	input review.ArtifactRef
}

func newMailing(t *testing.T) mailing {
	t.Helper()
	w := activitiestest.New()
	m := mailing{fakes: w, db: openRequest(t, w)}.alike(t)
	m.input = m.db.Keep(t, findings())
	m.saveRecipients(t,
		review.Recipient{User: "alice", Address: alice, Role: review.RoleAuthor},
		review.Recipient{User: "bob", Address: bob, Role: review.RoleSubscriber},
		review.Recipient{User: "Bob", Address: "BOB@corp.test", Role: review.RoleOwner})
	return m
}

// alike returns a stage of its own over the same fakes and database: an environment runs
// one activity at a time.
func (m mailing) alike(t *testing.T) mailing {
	t.Helper()
	m.env, m.stage = newEnv(&activities.Interceptor{Scrub: plain}), &activities.Notifier{
		Log: slog.New(slog.DiscardHandler), Reports: m.db.Artifacts(t, review.NamespaceReport), Outbox: m.db, Post: m.fakes,
		Policy: activities.RecipientPolicy{CleanTo: activities.CleanToAuthor, Max: 10},
	}
	m.env.RegisterActivity(m.stage)
	return m
}

// findings is a report with one finding.
func findings() review.Report {
	return review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomeFindings, Findings: []review.Finding{{Path: "//depot/a.go", Title: "t"}}}
}

func (m mailing) saveRecipients(t *testing.T, rs ...review.Recipient) {
	t.Helper()
	testkit.NoError(t, m.db.SaveRecipients(t.Context(), 4711, 1, rs))
}

// addRow adds an outbox row, as an operator can.
func (m mailing) addRow(t *testing.T, address string) {
	t.Helper()
	if _, err := m.db.PrepareDeliveries(t.Context(), 4711, 1, []string{address}); err != nil {
		t.Fatal(err)
	}
}

// row returns the outbox row of a recipient.
func (m mailing) row(t *testing.T, recipient string) (row review.Delivery) {
	t.Helper()
	rows, err := m.db.PrepareDeliveries(t.Context(), 4711, 1, nil)
	testkit.NoError(t, err)
	for _, row = range rows {
		if row.Key.Recipient == recipient {
			return row
		}
	}
	t.Fatalf("%s has no row", recipient)
	return row
}

func (m mailing) notify() (activities.NotifyResult, error) {
	value, err := m.env.ExecuteActivity(m.stage.Notify, activities.StageParams{Request: request, Input: m.input})
	if err != nil {
		return activities.NotifyResult{}, err
	}
	var result activities.NotifyResult
	return result, value.Get(&result)
}

// Each recipient gets one message, however often the stage runs and however the address is
// spelled (notification 6.3) (notification 10.2).
func TestNotifyMailsEachRecipientOnce(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for range 3 {
		if _, err := m.notify(); err != nil {
			t.Fatal(err)
		}
	}
	m.wantCopies(t, 1, 1)
}

// Findings that nobody can get are a failure that names each person and the reason, without
// an address. When an administrator has removed the reason, the next run of the stage
// notifies. A channel counts as a recipient.
func TestFindingsThatNobodyCanGet(t *testing.T) {
	t.Parallel()
	gone := review.Recipient{User: "gone", Role: review.RoleUnresolved}
	for name, tc := range map[string]struct {
		policy activities.RecipientPolicy
		known  []review.Recipient
		want   []string
	}{
		"all opted out": {
			activities.RecipientPolicy{OptOut: []string{"alice", "BOB@corp.test"}}, nil,
			[]string{"alice opted out", "bob opted out", "an owner opted out"},
		},
		"other domains": {
			activities.RecipientPolicy{AllowedDomains: []string{"example.com"}}, []review.Recipient{{User: "a@b", Address: alice, Role: review.RoleAuthor}, gone},
			[]string{"a has an address outside of mail.allowed_domains", "gone has no usable address"},
		},
		"bots":        {activities.RecipientPolicy{Bots: []string{"*"}}, nil, []string{"alice is a bot", "an owner is a bot"}},
		"no address":  {activities.RecipientPolicy{}, []review.Recipient{gone}, []string{"gone has no usable address"}},
		"no people":   {activities.RecipientPolicy{}, []review.Recipient{}, []string{"no author, subscriber or owner is known"}},
		"many people": {activities.RecipientPolicy{}, slices.Repeat([]review.Recipient{gone}, 100), []string{"80 more people"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			people := []review.Recipient{
				{User: "alice", Address: alice, Role: review.RoleAuthor}, {User: "bob", Address: bob, Role: review.RoleSubscriber}, {Address: bob, Role: review.RoleOwner},
			}
			if tc.known != nil {
				people = tc.known
			}
			m.saveRecipients(t, people...)
			m.stage.Policy = tc.policy
			m.stage.Policy.Max = 10
			_, err := m.notify()
			var report failure.Report
			if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !app.NonRetryable() || app.Details(&report) != nil || report.Class != failure.RecipientRejected {
				t.Fatalf("ended with %v, want RECIPIENT_REJECTED", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(report.Stack, want) {
					t.Errorf("the report lacks %q: %s", want, report.Stack)
				}
			}
			if strings.Contains(report.Stack+err.Error(), "@") {
				t.Errorf("the report has an address: %s", report.Stack)
			}
			m.stage.Policy = activities.RecipientPolicy{Max: 10}
			m.saveRecipients(t, review.Recipient{User: "carol", Address: carol, Role: review.RoleAuthor})
			if result, err := m.notify(); err != nil || result.Sent != 1 || m.fakes.Copies(carol) != 1 {
				t.Errorf("after the repair: %+v, %v", result, err)
			}
		})
	}
	m := newMailing(t)
	m.db.Exec(t, `insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k', 1, 1, 'p4', 'r')`)
	m.db.Exec(t, `insert into criticizer.deliveries (changelist_id, review_version, recipient, bounced_at) values (1, 1, $1, now()), (1, 1, $2, now())`, alice, bob)
	if _, err := m.notify(); classOf(err) != failure.RecipientRejected || !strings.Contains(err.Error(), "bob has an address that bounced") {
		t.Errorf("all bounced: %v", err)
	}
	var excluded int
	m.db.Scan(t, `select count(*) from criticizer.recipients where why like '%bounced%'`, nil, &excluded)
	if excluded != 3 {
		t.Errorf("the reason is stored for %d of 3 people", excluded)
	}
	m = newMailing(t)
	m.stage.Policy.OptOut = []string{alice, bob}
	m.stage.Channels = []activities.Channel{{Name: review.ChannelSwarm, Post: m.fakes}}
	if result, err := m.notify(); err != nil || len(result.Channels) != 1 {
		t.Errorf("with a channel: %+v, %v", result, err)
	}
	m = newMailing(t)
	m.stage.Policy.OptOut = []string{alice, bob}
	m.input = m.db.Keep(t, review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomeNotReviewed})
	if result, err := m.notify(); err != nil || result.Sent != 0 {
		t.Errorf("without findings: %+v, %v", result, err)
	}
}

// Whichever step fails, the next attempt sends what is unsent, and nothing twice
// (notification 6.4) (notification 8.2) (notification 10.3).
func TestNotifySurvivesFailureAtEveryStep(t *testing.T) {
	t.Parallel()
	down := failure.Errorf(failure.DatabaseUnavailable, "postgres is down")
	for _, tc := range []struct{ name, op string }{
		{"outbox cannot be read", "Recipients"},
		{"rows cannot be prepared", "PrepareDeliveries"},
		{"row cannot be re-read", "Delivery"},
		{"attempt cannot be begun", "BeginDelivery"},
		{"provider is unreachable", "Send"},
		{"reply is lost after acceptance", "Send reply"},
		{"row cannot be marked sent", "MarkSent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			fault := error(down)
			if tc.op == "Send reply" {
				fault = failure.Errorf(failure.DeliveryAmbiguous, "connection lost after data")
			}
			m.fakes.Fail(tc.op, fault)
			if _, err := m.notify(); err == nil {
				t.Fatal("the fault went unnoticed")
			}
			if _, err := m.notify(); err != nil {
				t.Fatalf("second attempt: %v", err)
			}
			m.wantCopies(t, 1, 1)
		})
	}
}

// A row that has the provider's ID and no time may have been sent, even if no attempt is in
// doubt: it is looked up (notification 6.4).
func TestRowWithAnIDIsLookedUp(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.addRow(t, alice)
	m.addRow(t, bob)
	m.db.Exec(t, `update criticizer.deliveries set notification_id = 'm1'`)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAccepted, NotificationID: "m1"})
	if result, err := m.notify(); err != nil || result.Sent != 0 {
		t.Fatalf("%d mails were sent, %v", result.Sent, err)
	}
	m.wantCopies(t, 0, 0)
}

// An attempt of unknown result is not repeated (notification 8.2).
func TestNotifyDoesNotResendWithoutEvidence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		evidence review.Evidence
		class    failure.Class
		wait     time.Duration
		held     int
		copies   int
	}{
		{"evidence to come is waited for", review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 4 * time.Minute, 0, 0},
		{"without any the row is held", review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 0, 1, 0},
		{"absent is sent again", review.Evidence{State: review.EvidenceAbsent}, "", 0, 0, 1},
		{"rejected fails the row", review.Evidence{State: review.EvidenceRejected}, failure.RecipientRejected, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			if tc.wait > 0 {
				tc.evidence.AskAgain = time.Now().Add(tc.wait)
			}
			m.fakes.SetEvidence(tc.evidence)
			// The first send is not accepted, but the caller cannot know.
			m.fakes.Fail("Send", failure.Errorf(failure.DeliveryAmbiguous, "connection lost"))
			if _, err := m.notify(); err == nil {
				t.Fatal("the lost connection went unnoticed")
			}
			_, err := m.notify()
			if got := classOf(err); got != tc.class {
				t.Fatalf("second attempt ended with %q (%v), want %q", got, err, tc.class)
			}
			if got := waitOf(err); got > max(tc.wait, time.Second) || got < tc.wait-time.Minute {
				t.Errorf("the next attempt comes after %s, want %s", got, tc.wait)
			}
			if n := m.fakes.Calls("HoldDelivery"); n != tc.held {
				t.Errorf("held %d times, want %d", n, tc.held)
			}
			m.wantCopies(t, tc.copies, 1)
		})
	}
}

// A held row waits for an operator, so no attempt is spent on it (processing 8.2.3).
func TestHeldRowIsNotTouched(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
	m.fakes.Fail("Send", failure.Errorf(failure.DeliveryAmbiguous, "connection lost"))
	for range 4 {
		if _, err := m.notify(); classOf(err) != failure.DeliveryAmbiguous {
			t.Fatalf("ended with %v, want DELIVERY_AMBIGUOUS", err)
		}
	}
	if _, err := m.notify(); !isFinal(err) {
		t.Errorf("%v is tried again", err)
	}
	if holds, lookups := m.fakes.Calls("HoldDelivery"), m.fakes.Calls("Lookup"); holds != 1 || lookups != 1 {
		t.Errorf("held %d times after %d look-ups, want once each", holds, lookups)
	}
	m.wantCopies(t, 0, 1)
}

func TestHeldRowDoesNotBlockRetriesOfOthers(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
	m.fakes.Fail("Send", failure.Errorf(failure.DeliveryAmbiguous, "connection lost"), failure.Errorf(failure.UpstreamUnavailable, "greylisted"))
	if _, err := m.notify(); isFinal(err) {
		t.Fatalf("%v is final", err)
	}
	m.fakes.Fail("Send", failure.Errorf(failure.UpstreamUnavailable, "greylisted"))
	if _, err := m.notify(); classOf(err) != failure.UpstreamUnavailable || isFinal(err) {
		t.Errorf("ended with %v, want what a retry may cure", err)
	}
}

// The recipients share the attempts: one that can be retried is retried, and one that must
// wait for minutes must not lose them to one that can be retried at once.
func TestMostRetryableErrorDecides(t *testing.T) {
	t.Parallel()
	late := failure.Errorf(failure.DeliveryAmbiguous, "no evidence yet")
	late.RetryAfter = 3 * time.Minute
	greylisted := failure.Errorf(failure.UpstreamUnavailable, "greylisted")
	for _, errs := range [][2]error{{failure.Errorf(failure.RecipientRejected, "no such mailbox"), greylisted}, {greylisted, late}} {
		m := newMailing(t)
		m.fakes.Fail("Send", errs[:]...)
		_, err := m.notify()
		if classOf(err) != failure.ClassOf(errs[1]) || errors.Is(errs[1], late) && waitOf(err) != 3*time.Minute {
			t.Errorf("ended with %v and a delay of %s, want %v", err, waitOf(err), errs[1])
		}
	}
}

// A refused recipient is not retried, and the others are notified (notification 8.1).
func TestRefusedRecipientDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.Fail("Send", failure.Errorf(failure.RecipientRejected, "no such mailbox"))
	for range 2 {
		if _, err := m.notify(); classOf(err) != failure.RecipientRejected {
			t.Fatalf("ended with %v, want RECIPIENT_REJECTED", err)
		}
	}
	m.wantCopies(t, 0, 1)
	if n := m.fakes.Calls("Send"); n != 2 {
		t.Errorf("sent %d times, want one per recipient", n)
	}
}

// A failure that cannot be recorded is reported with the reason, and the next attempt looks
// up before it sends.
func TestUnrecordedFailureIsReported(t *testing.T) {
	t.Parallel()
	for op, class := range map[string]failure.Class{
		"MarkDeliveryFailed": failure.RecipientRejected, "AbandonDelivery": failure.UpstreamUnavailable,
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.fakes.Fail("Send", failure.Errorf(class, "refused"))
			m.fakes.Fail(op, failure.Errorf(failure.DatabaseUnavailable, "postgres is down"))
			_, err := m.notify()
			var report failure.Report
			if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.Details(&report) != nil || report.Class != class || !strings.Contains(report.Stack, "postgres is down") {
				t.Errorf("ended with %v and %+v, want %s and the reason", err, report, class)
			}
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAccepted, NotificationID: "m1"})
			if _, err := m.notify(); err != nil {
				t.Errorf("the second attempt ended with %v", err)
			}
			m.wantCopies(t, 0, 1)
		})
	}
}

// A refusal of the whole message counts after a look-up has found no record of it
// (notification 8.1) (notification 8.2).
func TestRefusalOfTheWholeMessageIsLookedUp(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Minute)
	for _, tc := range []struct {
		name     string
		refusal  failure.Class
		evidence review.Evidence
		class    failure.Class // of the second attempt; none: it succeeds
		copies   int
		row      review.DeliveryStatus
	}{
		{"permanent, and absent", failure.RecipientRejected, review.Evidence{State: review.EvidenceAbsent}, failure.RecipientRejected, 0, review.DeliveryFailed},
		{"permanent, and no evidence will come", failure.RecipientRejected, review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 0, review.DeliveryHeld},
		{"permanent, and evidence can still come", failure.RecipientRejected, review.Evidence{State: review.EvidenceUnknown, AskAgain: later}, failure.DeliveryAmbiguous, 0, review.DeliveryPending},
		{"permanent, and accepted", failure.RecipientRejected, review.Evidence{State: review.EvidenceAccepted, NotificationID: "m1"}, "", 0, review.DeliverySent},
		{"ours, and absent", failure.ConfigInvalid, review.Evidence{State: review.EvidenceAbsent}, failure.ConfigInvalid, 0, review.DeliveryPending},
		{"temporary, and absent", failure.UpstreamUnavailable, review.Evidence{State: review.EvidenceAbsent}, "", 1, review.DeliverySent},
		{"temporary, and no evidence will come", failure.UpstreamUnavailable, review.Evidence{State: review.EvidenceUnknown}, failure.DeliveryAmbiguous, 0, review.DeliveryHeld},
		{"temporary, and accepted", failure.UpstreamUnavailable, review.Evidence{State: review.EvidenceAccepted, NotificationID: "m1"}, "", 0, review.DeliverySent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.fakes.SetEvidence(tc.evidence)
			m.fakes.Fail("Send", failure.Errorf(failure.DeliveryAmbiguous, "refused, who knows: %w", failure.Errorf(tc.refusal, "554")))
			if _, err := m.notify(); classOf(err) != failure.DeliveryAmbiguous {
				t.Fatalf("the refusal ended with %v, want DELIVERY_AMBIGUOUS", err)
			}
			if _, err := m.notify(); classOf(err) != tc.class {
				t.Errorf("the attempt after it ended with %v, want class %q", err, tc.class)
			}
			m.wantCopies(t, tc.copies, 1)
			m.wantStatus(t, tc.row)
			if bounced, err := m.db.Bounced(t.Context(), []string{alice}); err != nil || (len(bounced) == 1) != (tc.row == review.DeliveryFailed) {
				t.Errorf("bounced addresses: %q, %v", bounced, err)
			}
		})
	}
}

// An accepted mail is marked even if the attempt was canceled meanwhile.
func TestAcceptedMailIsMarkedAfterCancellation(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	ctx, end := context.WithCancel(t.Context())
	m.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	m.fakes.AfterSend(end)
	_, _ = m.notify()
	m.wantStatus(t, review.DeliverySent)
}

// An address outside of the allowed domains gets no mail, even if an operator added its
// row, and the report names its user.
func TestNoMailLeavesTheAllowedDomains(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.stage.Policy.AllowedDomains = []string{"corp.test"}
	m.saveRecipients(t, review.Recipient{User: "alice", Address: alice, Role: review.RoleAuthor},
		review.Recipient{User: "eve", Address: "eve@evil.test", Role: review.RoleSubscriber})
	if result, err := m.notify(); err != nil || result.Sent != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := m.fakes.Mails()[0].Outside; !slices.Equal(got, []string{"eve"}) {
		t.Errorf("the report names %q", got)
	}
	m.addRow(t, "eve@evil.test")
	if _, err := m.notify(); err == nil || m.fakes.Copies("eve@evil.test") != 0 {
		t.Errorf("a row of an operator: %v, %d mails", err, m.fakes.Copies("eve@evil.test"))
	}
	if row := m.row(t, "eve@evil.test"); row.Status != review.DeliveryFailed {
		t.Errorf("the row of eve is %+v, want it failed", row)
	}
}

// The names of files that may not be read are known to the author, and may be a secret to
// others.
func TestDeniedPathsAreForTheAuthor(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	var covered review.Coverage
	for _, reason := range []review.SkipReason{review.SkipNotAllowed, review.SkipDenied, review.SkipHidden, review.SkipBinary} {
		covered = append(covered, review.NewFileCoverage("//depot/"+string(reason), "", reason))
	}
	report := findings()
	report.Coverage = covered
	m.input = m.db.Keep(t, report)
	if result, err := m.notify(); err != nil || result.Sent != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	paths := func(r review.Report) (n int) {
		for _, f := range r.Coverage {
			n += min(len(f.Path), 1)
		}
		return n
	}
	mails := m.fakes.Mails() // to alice, the author, and bob
	if paths(mails[0]) != 4 || paths(mails[1]) != 1 || len(mails[1].Coverage) != 4 {
		t.Errorf("the author's mail names %d files, bob's %d of %d; want 4, and 1 of 4", paths(mails[0]), paths(mails[1]), len(mails[1].Coverage))
	}
	if mails[0].To != review.RoleAuthor || mails[1].To != review.RoleSubscriber {
		t.Errorf("the mails are for %q and %q, want author and subscriber", mails[0].To, mails[1].To)
	}
}

// (notification 8.3)
// A reply to the mail of anyone but the author goes to the author, unless the setting is off.
func TestRepliesGoToTheAuthor(t *testing.T) {
	t.Parallel()
	for on, others := range map[bool]string{true: alice, false: ""} {
		m := newMailing(t)
		m.stage.Policy.ReplyToAuthor = on
		if _, err := m.notify(); err != nil {
			t.Fatal(err)
		}
		for _, mail := range m.fakes.Mails() {
			want := others
			if mail.To == review.RoleAuthor {
				want = ""
			}
			if mail.ReplyTo != want {
				t.Errorf("reply_to_author %t: a reply to the mail of the %s goes to %q, want %q", on, mail.To, mail.ReplyTo, want)
			}
		}
	}
}

// A held row keeps the answer, the request ID and the text of its first failure.
func TestHeldRowKeepsItsFirstFailure(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
	first := failure.Errorf(failure.DeliveryAmbiguous, "the answer is incomplete")
	first.Upstream, first.RequestID = "502", "r-1"
	m.fakes.Fail("Send", first)
	_, _ = m.notify()
	for range 2 {
		_, err := m.notify()
		var report failure.Report
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		if !ok || app.Details(&report) != nil || report.Upstream != "502" || report.RequestID != "r-1" || !strings.Contains(report.Stack, "the answer is incomplete") {
			t.Errorf("%+v: %v", report, err)
		}
	}
}

func TestMarkComesAfterSend(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.AfterSend(func() {
		if marked, sent := m.fakes.Calls("MarkSent"), m.fakes.Calls("Send"); marked != sent-1 {
			t.Errorf("at send %d there were %d marks", sent, marked)
		}
	})
	if _, err := m.notify(); err != nil {
		t.Fatal(err)
	}
}

func (m mailing) wantCopies(t *testing.T, toAlice, toBob int) {
	t.Helper()
	if a, b := m.fakes.Copies(alice), m.fakes.Copies(bob); a != toAlice || b != toBob {
		t.Errorf("alice got %d copies and bob %d, want %d and %d", a, b, toAlice, toBob)
	}
}

// waitOf is the delay before the next attempt.
func waitOf(err error) time.Duration {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return 0
	}
	return app.NextRetryDelay()
}

// isFinal reports whether Temporal does not retry.
func isFinal(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable()
}

func classOf(err error) failure.Class {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return ""
	}
	return failure.Class(app.Type())
}

// An operator readdresses a row while the attempt sends another one: the review must not end
// with a recipient who was not notified.
func TestNotifySendsToARowAddedMeanwhile(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	rows, err := m.db.PrepareDeliveries(t.Context(), 4711, 1, []string{alice, bob})
	testkit.NoError(t, err)
	m.fakes.AfterSend(func() {
		m.fakes.AfterSend(nil)
		_, err := m.db.ReaddressDelivery(t.Context(), rows[1].ID, "zoe@corp.test", "olga", "INC-1")
		testkit.NoError(t, err)
	})
	result, err := m.notify()
	testkit.NoError(t, err)
	for address, want := range map[string]int{alice: 1, bob: 0, "zoe@corp.test": 1} {
		if n := m.fakes.Copies(address); n != want {
			t.Errorf("%s has %d mails, want %d: %+v", address, n, want, result)
		}
	}
}
