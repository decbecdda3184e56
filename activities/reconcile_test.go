package activities_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

var ambiguous = failure.Errorf(failure.DeliveryAmbiguous, "connection lost after data")

// reconcile runs ReconcileDeliveries over rows that are an hour older by now.
func (m mailing) reconcile(t *testing.T) activities.Reconciled {
	t.Helper()
	m.db.Backdate(t, time.Hour)
	done, err := m.tryReconcile()
	testkit.NoError(t, err)
	return done
}

func (m mailing) tryReconcile() (activities.Reconciled, error) {
	value, err := m.env.ExecuteActivity(m.stage.ReconcileDeliveries)
	if err != nil {
		return activities.Reconciled{}, err
	}
	var done activities.Reconciled
	return done, value.Get(&done)
}

// finish ends the job with any rows: an operator can requeue one of a finished review.
func (m mailing) finish(t *testing.T) {
	t.Helper()
	m.db.Exec(t, `update criticizer.jobs set state = 'succeeded', outcome = 'findings', findings = 1, finished_at = now(), report = $1`, string(m.input))
}

// mailAll mails alice and bob, and finishes the job.
func (m mailing) mailAll(t *testing.T) {
	t.Helper()
	if _, err := m.notify(); err != nil {
		t.Fatal(err)
	}
	m.finish(t)
}

func (m mailing) wantStatus(t *testing.T, ofAlice review.DeliveryStatus) {
	t.Helper()
	if got := m.row(t, alice).Status; got != ofAlice {
		t.Errorf("alice's row is %s, want %s", got, ofAlice)
	}
}

// A row of unknown result is settled by the provider's evidence, and unchanged without
// (notification 8.2).
func TestReconcileSettlesOpenRows(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for _, tc := range []struct {
		name     string
		fault    string // the first call of which ends ambiguously
		evidence review.Evidence
		want     review.DeliveryStatus
		done     activities.Reconciled
	}{
		{
			"an accepted mail is marked", "Send reply", review.Evidence{State: review.EvidenceAbsent},
			review.DeliverySent, activities.Reconciled{Checked: 1, Settled: 1},
		},
		{
			"a bounced mail fails its row", "Send", review.Evidence{State: review.EvidenceRejected},
			review.DeliveryFailed, activities.Reconciled{Checked: 1, Refused: 1},
		},
		{
			"a mail that was not accepted is left to the notify stage", "Send", review.Evidence{State: review.EvidenceAbsent},
			review.DeliveryPending, activities.Reconciled{Checked: 1, Open: 1},
		},
		{
			"nothing is decided before the evidence is in", "Send", review.Evidence{State: review.EvidenceUnknown, AskAgain: later},
			review.DeliveryPending, activities.Reconciled{Checked: 1, Open: 1},
		},
		{
			"a row without evidence is held", "Send", review.Evidence{State: review.EvidenceUnknown},
			review.DeliveryHeld, activities.Reconciled{Checked: 1, Open: 1},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.fakes.SetEvidence(tc.evidence)
			m.fakes.Fail(tc.fault, ambiguous)
			if _, err := m.notify(); err == nil {
				t.Fatal("the lost connection went unnoticed")
			}
			sends := m.fakes.Calls("Send")
			if done := m.reconcile(t); done != tc.done {
				t.Errorf("did %+v, want %+v", done, tc.done)
			}
			m.wantStatus(t, tc.want)
			if m.fakes.Calls("Send") != sends {
				t.Error("reconciliation sent a mail of a review that is not over")
			}
		})
	}
}

func TestReconcileIgnoresRunningAttempts(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.Fail("Send reply", ambiguous)
	_, _ = m.notify()
	if done, err := m.tryReconcile(); err != nil || done != (activities.Reconciled{}) {
		t.Errorf("did %+v, %v, want nothing: the attempt has only just begun", done, err)
	}
}

// Evidence that arrives after a row was held decides.
func TestReconcileReleasesHeldRows(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
	m.fakes.Fail("Send", ambiguous)
	for range 2 {
		_, _ = m.notify()
	}
	m.wantStatus(t, review.DeliveryHeld)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent})
	if done := m.reconcile(t); done.Requeued != 1 {
		t.Errorf("did %+v, want one requeued", done)
	}
	if _, err := m.notify(); err != nil {
		t.Fatal(err)
	}
	m.wantCopies(t, 1, 1)
}

// A row that is marked sent and has no record violates the order send, then mark: it is
// sent again. The second time it is held, because the evidence is missing, not the mail
// (notification 8.2) (notification 8.3).
func TestReconcileSendsWhatIsMarkedSentWithoutRecord(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
	m.fakes.Lose(alice)
	if done := m.reconcile(t); done.Unproven != 1 || done.Sent != 1 || done.Confirmed != 1 {
		t.Fatalf("did %+v, want alice's mail found missing and sent", done)
	}
	m.wantCopies(t, 1, 1)
	m.wantStatus(t, review.DeliverySent)
	m.fakes.Lose(alice)
	if done := m.reconcile(t); done.Unproven != 1 || done.Sent != 0 {
		t.Fatalf("did %+v, want alice's mail held", done)
	}
	m.wantStatus(t, review.DeliveryHeld)
	m.reconcile(t)
	m.wantCopies(t, 0, 1)
}

// A row that no provider has ever confirmed, and about which no source has evidence, is held at any
// age; one that the server confirmed itself stays sent (notification 8.3).
func TestReconcileHoldsWhatNothingProves(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, 20 * 24 * time.Hour} {
		m := newMailing(t)
		m.mailAll(t)
		m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
		m.db.Backdate(t, age)
		m.db.Exec(t, `update criticizer.deliveries set evidence = null where recipient = $1`, alice)
		m.fakes.Lose(alice)
		m.fakes.Lose(bob)
		if done := m.reconcile(t); done.Unproven != 1 || done.Sent != 0 {
			t.Errorf("after %s: did %+v, want alice's mail held", age, done)
		}
		m.wantStatus(t, review.DeliveryHeld)
		if got := m.row(t, bob).Status; got != review.DeliverySent {
			t.Errorf("after %s: bob's mail, which the server confirmed, is %s", age, got)
		}
	}
}

// A mail that is missing is sent again at any age: the source has passed its positive control.
func TestReconcileSendsOldLostMail(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.db.Backdate(t, 20*24*time.Hour)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
	m.fakes.Lose(alice)
	if done := m.reconcile(t); done.Unproven != 1 || done.Sent != 1 {
		t.Errorf("did %+v, want alice's mail sent", done)
	}
	m.wantCopies(t, 1, 1)
}

// Many missing mails at once pause the resends, even if others are found. The rows are checked
// again, and show until a source has the mails.
func TestManyMissingMailsPauseResends(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.addRow(t, carol)
	m.addRow(t, "dan@corp.test")
	if _, err := m.notify(); err != nil {
		t.Fatal(err)
	}
	missing := func() (n int) {
		m.db.Scan(t, `select value::int from criticizer.figures where name = 'criticizer_deliveries_missing'`, nil, &n)
		return n
	}
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
	for _, address := range []string{alice, bob, carol} {
		m.fakes.Lose(address)
	}
	sends := m.fakes.Calls("Send")
	for range 2 {
		if done := m.reconcile(t); done.Missing != 3 || done.Unproven != 0 || m.fakes.Calls("Send") != sends || missing() != 3 {
			t.Errorf("did %+v, the metric shows %d, want a pause of three", done, missing())
		}
		m.wantStatus(t, review.DeliverySent)
		m.db.Backdate(t, time.Hour)
	}
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAccepted, Source: "journal"})
	if done := m.reconcile(t); done.Confirmed != 4 || missing() != 0 {
		t.Errorf("did %+v, the metric shows %d, after the source was repaired", done, missing())
	}
}

// A source that stopped recording lacks a few mails in each run. Mails that were sent again
// count until the source has them, so that a later run pauses.
func TestMailsMissingOverSeveralRunsPauseResends(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
	m.fakes.Lose(alice)
	m.fakes.Lose(bob)
	if done := m.reconcile(t); done.Sent != 2 {
		t.Fatalf("did %+v, want two mails sent again", done)
	}
	m.fakes.Lose(alice)
	m.fakes.Lose(bob)
	m.addRow(t, carol)
	if done := m.reconcile(t); done.Unproven != 2 || done.Sent != 1 {
		t.Fatalf("did %+v, want two mails held and carol's mail sent", done)
	}
	m.fakes.Lose(carol)
	sends := m.fakes.Calls("Send")
	if done := m.reconcile(t); done.Missing != 3 || done.Unproven != 0 || m.fakes.Calls("Send") != sends {
		t.Errorf("did %+v, want a pause", done)
	}
}

// A bounce for a reason of ours closes no address: once the reason is repaired, an operator sends
// again.
func TestBounceOfOursClosesNoAddress(t *testing.T) {
	t.Parallel()
	for class, bounced := range map[failure.Class]int{failure.ConfigInvalid: 0, failure.RecipientRejected: 1, "": 1} {
		m := newMailing(t)
		m.mailAll(t)
		m.fakes.SetEvidence(review.Evidence{State: review.EvidenceRejected, Class: string(class), Upstream: "550 5.7.26"})
		m.fakes.Lose(alice)
		m.reconcile(t)
		m.wantStatus(t, review.DeliveryFailed)
		if got, err := m.db.Bounced(t.Context(), []string{alice}); err != nil || len(got) != bounced {
			t.Errorf("%s: %v, %v", class, got, err)
		}
	}
}

// Two mails may get lost between two runs, even if they are all.
func TestReconcileSendsAFewLostMails(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
	m.fakes.Lose(alice)
	m.fakes.Lose(bob)
	if done := m.reconcile(t); done.Unproven != 2 || done.Sent != 2 {
		t.Errorf("did %+v, want two mails found missing and sent", done)
	}
	m.wantCopies(t, 1, 1)
	var missing int
	done := m.reconcile(t)
	m.db.Scan(t, `select count(missing_at) from criticizer.deliveries`, nil, &missing)
	if done.Confirmed != 2 || missing != 0 {
		t.Errorf("did %+v, %d mails count as missing, want both found", done, missing)
	}
}

func TestReconcileDoesNotTakeLostEvidenceForLostMail(t *testing.T) {
	t.Parallel()
	absent := review.Evidence{State: review.EvidenceAbsent, Observed: true}
	for name, lose := range map[string]func(*testing.T, mailing){
		"it was confirmed before": func(t *testing.T, m mailing) {
			m.reconcile(t)
			m.fakes.Lose(alice)
		},
		"the provider keeps no record": func(_ *testing.T, m mailing) {
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent})
			m.fakes.Lose(alice)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.mailAll(t)
			m.fakes.SetEvidence(absent)
			lose(t, m)
			sends := m.fakes.Calls("Send")
			if done := m.reconcile(t); done.Unproven != 0 || m.fakes.Calls("Send") != sends {
				t.Errorf("did %+v, want nothing requeued", done)
			}
			m.wantStatus(t, review.DeliverySent)
		})
	}
}

// Behind a relay, an invalid recipient shows only as a bounce after the review
// (notification 8.1).
func TestReconcileFailsBouncedRows(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceRejected})
	m.fakes.Lose(alice)
	if done := m.reconcile(t); done.Refused != 1 {
		t.Errorf("did %+v, want one refused", done)
	}
	m.wantStatus(t, review.DeliveryFailed)
	if m.reconcile(t); m.fakes.Calls("Send") != 2 {
		t.Error("a refused recipient was tried again")
	}
}

// Rows that an operator requeues after the review are sent by reconciliation: stage notify
// does not run again.
func TestReconcileSendsForFinishedReviews(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.addRow(t, carol)
	m.fakes.Fail("Send", failure.Errorf(failure.UpstreamUnavailable, "greylisted"))
	if _, err := m.tryReconcile(); classOf(err) != failure.UpstreamUnavailable {
		t.Errorf("ended with %v, want the provider's failure", err)
	}
	if done := m.reconcile(t); done.Sent != 1 {
		t.Errorf("did %+v, want one sent", done)
	}
	if n := m.fakes.Copies(carol); n != 1 {
		t.Errorf("carol got %d copies", n)
	}
	m.wantCopies(t, 1, 1)
}

// Runs overlap with each other and with stage notify: one of them sends (notification 8.2)
// (notification 10.3).
func TestConcurrentReconciliations(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown, AskAgain: time.Now().Add(time.Minute)})
	m.addRow(t, carol)
	var runs sync.WaitGroup
	for i := range 8 {
		other := m.alike(t)
		runs.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = other.tryReconcile()
			} else {
				_, err = other.notify()
			}
			if class := classOf(err); err != nil && class != failure.WriteConflict && class != failure.DeliveryAmbiguous {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	m.wantCopies(t, 1, 1)
	if n := m.fakes.Copies(carol); n != 1 {
		t.Errorf("carol got %d copies", n)
	}
}

// No row fails without a look-up (notification 8.2).
func TestReconcileGivesUpExpiredReports(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault string
		want  review.DeliveryStatus
	}{
		"though it was accepted": {"Send reply", review.DeliverySent},
		"and it was not":         {"Send", review.DeliveryFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent})
			m.fakes.Fail(tc.fault, ambiguous)
			_, _ = m.notify()
			m.input = "report:expired"
			m.finish(t)
			m.reconcile(t)
			m.wantStatus(t, tc.want)
		})
	}
}

// What was never sent needs no look-up.
func TestReconcileGivesUpUnsentRowsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.fakes.Fail("BeginDelivery", slices.Repeat([]error{failure.Errorf(failure.DatabaseUnavailable, "postgres is down")}, 2)...)
	_, _ = m.notify()
	m.input = "report:expired"
	m.finish(t)
	m.reconcile(t)
	m.wantStatus(t, review.DeliveryFailed)
	if n := m.fakes.Calls("Lookup"); n != 0 {
		t.Errorf("%d look-ups for mails that were never sent", n)
	}
}

func TestReconcileStopsWhenTheProviderIsDown(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	var recipients []review.Recipient
	for _, name := range []string{"alice", "bob", "carol", "dave", "eve"} {
		recipients = append(recipients, review.Recipient{User: name, Address: name + "@corp.test", Role: review.RoleSubscriber})
	}
	m.saveRecipients(t, recipients...)
	m.mailAll(t)
	m.fakes.Fail("Lookup", slices.Repeat([]error{failure.Errorf(failure.NetworkUnreachable, "journal is down")}, 5)...)
	m.db.Backdate(t, time.Hour)
	before := m.fakes.Calls("Lookup")
	if _, err := m.tryReconcile(); classOf(err) != failure.NetworkUnreachable {
		t.Errorf("ended with %v, want the provider's failure", err)
	}
	if n := m.fakes.Calls("Lookup") - before; n != 3 {
		t.Errorf("the provider was asked %d times, want 3 of 5", n)
	}
	m.wantStatus(t, review.DeliverySent)
}

// Reports that cannot be read say nothing about the mail server: the other rows are checked.
func TestReconcileChecksOthersBesideUnreadableReports(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.mailAll(t)
	for _, address := range []string{"carol@corp.test", "dave@corp.test", "eve@corp.test"} {
		m.addRow(t, address)
	}
	m.input = m.db.Keep(t, review.Report{Changelist: 4711, Version: 2})
	m.finish(t)
	m.db.Backdate(t, time.Hour)
	if _, err := m.tryReconcile(); classOf(err) != failure.ArtifactForeign {
		t.Errorf("ended with %v, want the error of the reports", err)
	}
	if n := m.fakes.Calls("Lookup"); n != 2 {
		t.Errorf("%d look-ups of the 2 sent mails", n)
	}
}

// A rerun names the earlier version and what changed since (notification 10.4).
func TestNotifyComparesWithTheEarlierVersion(t *testing.T) {
	t.Parallel()
	earlier := encoded(t, review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomeFindings, Findings: []review.Finding{{Path: "a.go", Quote: "x"}}})
	for name, tc := range map[string]struct {
		body     []byte // nil if the report is gone
		compared bool
	}{
		"a report that is there": {earlier, true},
		"a report that expired":  {nil, false},
		"a report not of ours":   {[]byte("?"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.input = "report:gone"
			if tc.body != nil {
				m.input, _ = m.db.Artifacts(t, review.NamespaceReport).Put(t.Context(), request.Owner(), tc.body)
			}
			m.finish(t)
			rerun, report := review.Request{Changelist: 4711, Version: 2, ServerID: "p4", Key: "review-p4-4711-v2"}, findings()
			report.Version = 2
			if _, err := m.db.OpenJob(t.Context(), rerun, "run"); err != nil {
				t.Fatal(err)
			}
			testkit.NoError(t, m.db.SaveRecipients(t.Context(), 4711, 2, []review.Recipient{{User: "alice", Address: alice, Role: review.RoleAuthor}}))
			if _, err := m.env.ExecuteActivity(m.stage.Notify, activities.StageParams{Request: rerun, Input: m.db.Keep(t, report)}); err != nil {
				t.Fatal(err)
			}
			mail := m.fakes.Mails()[0]
			if mail.Earlier != 1 || (mail.Progress != nil) != tc.compared {
				t.Fatalf("mailed a rerun of version %d with %+v", mail.Earlier, mail.Progress)
			}
			if tc.compared && (mail.Progress.Since != 1 || len(mail.Progress.Resolved) != 1) {
				t.Errorf("mailed %+v", mail.Progress)
			}
		})
	}
}

// A rerun for gaps mails only findings that the version before lacks, also when a mail is sent
// later, and nothing without one or if the report of that version has expired.
func TestRerunMailsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		more    []review.Finding
		expired bool
	}{
		"nothing new":             {},
		"a new finding":           {more: []review.Finding{{Path: "b.go", Title: "new", Quote: "y"}}},
		"nothing to compare with": {more: []review.Finding{{Path: "b.go", Title: "new", Quote: "y"}}, expired: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			if tc.expired {
				m.input = "report:gone"
			}
			m.finish(t)
			rerun, report := review.Request{Changelist: 4711, Version: 2, ServerID: "p4", Key: "review-p4-4711-v2", OnlyNew: true}, findings()
			report.Version, report.Findings = 2, append(report.Findings, tc.more...)
			if _, err := m.db.OpenJob(t.Context(), rerun, "run"); err != nil {
				t.Fatal(err)
			}
			testkit.NoError(t, m.db.SaveRecipients(t.Context(), 4711, 2, []review.Recipient{{User: "alice", Address: alice, Role: review.RoleAuthor}}))
			ref := m.db.Keep(t, report)
			_, err := m.env.ExecuteActivity(m.stage.Notify, activities.StageParams{Request: rerun, Input: ref})
			if tc.expired {
				if classOf(err) != failure.ArtifactExpired || len(m.fakes.Mails()) != 0 {
					t.Errorf("mailed %+v, error %v", m.fakes.Mails(), err)
				}
				return
			}
			testkit.NoError(t, err)
			if len(tc.more) == 0 {
				var why string
				m.db.Scan(t, `select why from criticizer.recipients where review_version = 2`, nil, &why)
				if len(m.fakes.Mails()) != 0 || why != "has nothing new since version 1" {
					t.Errorf("mailed %+v; alice %s", m.fakes.Mails(), why)
				}
				return
			}
			_, err = m.db.PrepareDeliveries(t.Context(), 4711, 2, []string{bob}) // by an operator, later
			testkit.NoError(t, err)
			m.db.Exec(t, `update criticizer.jobs set state = 'succeeded', outcome = 'findings', findings = 2, finished_at = now(), report = $1 where review_version = 2`, string(ref))
			m.reconcile(t)
			mails := m.fakes.Mails()
			if len(mails) != 2 {
				t.Fatalf("mailed %+v", mails)
			}
			for _, mail := range mails {
				if len(mail.Findings) != 1 || mail.Findings[0].Title != "new" {
					t.Errorf("mailed %+v", mail)
				}
			}
		})
	}
}

// forgetting is an outbox whose changelist is forgotten after a notice has begun.
type forgetting struct {
	activitiestest.Database
	t *testing.T
}

func (f forgetting) MarkNotice(ctx context.Context, n review.Notice, inDoubt bool) (bool, error) {
	f.Exec(f.t, `select criticizer.forget_changelist(4711, 'olga', 'INC-1')`)
	return f.Database.MarkNotice(ctx, n, inDoubt)
}

// A dead letter of an early stage that stays open becomes one mail "not reviewed" to the author,
// even if a worker dies in between. A later replay still sends the digest.
func TestNoticeToTheAuthor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(mailing)
		runs    int
		copies  int
		why     string
	}{
		"sent once":          {func(mailing) {}, 2, 1, ""},
		"in doubt, accepted": {func(m mailing) { m.fakes.Fail("Send reply", ambiguous) }, 2, 1, ""},
		"in doubt, absent":   {func(m mailing) { m.fakes.Fail("Send", ambiguous) }, 2, 1, ""},
		"no answer for ever": {func(m mailing) {
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
			m.fakes.Fail("Send", ambiguous)
		}, 3, 0, "may have been notified"},
		"certainly not accepted, without evidence": {func(m mailing) {
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceUnknown})
			m.fakes.Fail("Send", failure.Errorf(failure.UpstreamUnavailable, "greylisted"))
		}, 2, 1, ""},
		"no author":                 {func(m mailing) { m.db.Exec(t, `delete from criticizer.recipients`) }, 2, 0, "not known"},
		"opted out":                 {func(m mailing) { m.stage.Policy.OptOut = []string{"alice"} }, 2, 0, "opted out"},
		"refused":                   {func(m mailing) { m.fakes.Fail("Send", failure.Errorf(failure.RecipientRejected, "no")) }, 2, 0, "refuses"},
		"the dead letter is recent": {func(m mailing) { m.stage.Policy.NotReviewedAfter = 9 * time.Hour }, 2, 0, ""},
		"turned off":                {func(m mailing) { m.stage.Policy.NotReviewedAfter = 0 }, 2, 0, ""},
		"forgotten meanwhile":       {func(m mailing) { m.stage.Outbox = forgetting{m.db, t} }, 2, 0, ""},
		"a replay runs":             {func(m mailing) { m.db.Exec(t, `update criticizer.dead_letters set state = 'replaying'`) }, 2, 0, ""},
		"the stage was notify":      {func(m mailing) { m.db.Exec(t, `update criticizer.dead_letters set stage = 'notify'`) }, 2, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailing(t)
			m.fakes.SetEvidence(review.Evidence{State: review.EvidenceAbsent, Observed: true})
			m.stage.Policy.NotReviewedAfter = 4 * time.Hour
			_, err := m.db.RecordDeadLetter(t.Context(), request, "run", failure.DeadLetter{ErrorClass: failure.QuotaExhausted, Stage: "llm", FirstFailureAt: time.Now(), LastFailureAt: time.Now()})
			testkit.NoError(t, err)
			m.db.Exec(t, `update criticizer.dead_letters set recorded_at = now() - interval '5 hours'`)
			tc.prepare(m)
			for range tc.runs {
				_, _ = m.tryReconcile()
				m.db.Exec(t, `update criticizer.notices set checked_at = now() - interval '1 hour'`)
			}
			if n := m.fakes.Copies(alice); n != tc.copies || m.fakes.Copies(bob) != 0 {
				t.Errorf("alice has %d copies, bob %d", n, m.fakes.Copies(bob))
			}
			var why string
			m.db.Scan(t, `select coalesce(max(why), '') from criticizer.notices`, nil, &why)
			if !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("the row says why: %q", why)
			}
			if tc.copies == 1 {
				r := m.fakes.Mails()[0]
				if r.Outcome != review.OutcomeNotReviewed || !strings.Contains(r.Reason, "QUOTA_EXHAUSTED") {
					t.Errorf("the mail says %+v", r)
				}
				if _, err := m.notify(); err != nil || m.fakes.Copies(alice) != 2 {
					t.Errorf("after the replay: %d copies, %v", m.fakes.Copies(alice), err)
				}
			}
		})
	}
}
