package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

// ledgers are the rows that the activities store besides the [books].
type ledgers interface {
	books
	SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error
	Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error)
	DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error)
	RecordCheck(ctx context.Context, id int64, confirmed bool) error
	ReserveTokens(ctx context.Context, cl review.Changelist, v review.Version, tokens, perDay int) (review.Grant, error)
	SettleTokens(ctx context.Context, cl review.Changelist, v review.Version, g review.Grant, used review.Usage) error
	ReviewUsage(ctx context.Context, cl review.Changelist, v review.Version) (review.Usage, int, error)
	RecordReview(ctx context.Context, cl review.Changelist, v review.Version, r review.Record) error
	ReportFindings(ctx context.Context, cl review.Changelist, v review.Version, findings []review.Finding) ([]review.Finding, error)
	WrongFindings(ctx context.Context, fingerprints []string) ([]string, error)
	RequireSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error
	AcquireSlots(ctx context.Context, key string, limits map[string]int) (bool, error)
	PassOnSlots(ctx context.Context, key string, limits map[string]int, wake func(ctx context.Context, workflowID, runID string) error) error
	ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error)
	ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error)
	SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.Prior, error)
	RecordContent(ctx context.Context, cl review.Changelist, v review.Version, c review.Content) (review.Changelist, error)
	EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.Prior, error)
	ReportOwner(ctx context.Context, of review.Owner, report review.ArtifactRef) (review.Owner, error)
}

// artifacts are one namespace of the artifact store.
type artifacts interface {
	Put(ctx context.Context, of review.Owner, body []byte) (review.ArtifactRef, error)
	Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error)
	PutAs(ctx context.Context, name string, body []byte) error
	GetAs(ctx context.Context, name string) ([]byte, error)
}

// A side is the database or its fakes, with what a test arranges in each in another way.
type side struct {
	ledgers
	artifacts func(review.Namespace) artifacts
	age       func(time.Duration) // makes attempts and mails older, and due for a check again
	occupy    func()              // another review takes the only slot of the pattern
	vacate    func()              // and ends
	shelve    func(review.Prior)  // the review of a shelf of changelist 4700
	steps     *[]string
}

// note records the class of an error and what the test has seen.
func (s side) note(what string, err error, seen ...any) {
	class := failure.Class("")
	if err != nil {
		class = failure.ClassOf(err)
	}
	*s.steps = append(*s.steps, fmt.Sprintf("%s: %s %v", what, class, seen))
}

const onlyPattern = "//depot/..."

var oneSlot = map[string]int{onlyPattern: 1}

func fakes() side {
	w := activitiestest.New()
	return side{
		ledgers: w, steps: &[]string{},
		artifacts: func(ns review.Namespace) artifacts { return w.Artifacts(ns) },
		age:       w.Backdate,
		occupy:    func() { w.SetSlots([]string{onlyPattern}, 1) }, vacate: func() {},
		shelve: func(p review.Prior) { w.SetShelf(&p) },
	}
}

func database(t *testing.T) side {
	t.Helper()
	d := storetest.New(t)
	db := d.Open(t, "")
	other := review.Request{Changelist: 4699, Version: 1, Key: "other", ServerID: "p4"}
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	noError(t, err)
	return side{
		ledgers: db, steps: &[]string{},
		artifacts: func(ns review.Namespace) artifacts {
			s, err := artifact.New(db.Blobs(ns), artifact.Config{Namespace: ns, Keyset: keyset, TTL: time.Hour})
			noError(t, err)
			return s
		},
		age: func(by time.Duration) {
			exec(t, d.Conn(t), `update criticizer.deliveries
				set last_attempt_at = last_attempt_at - $1::interval, notified_at = notified_at - $1::interval, checked_at = null`, by)
		},
		occupy: func() {
			open(t, db, other, "run")
			noError(t, db.RequireSlots(t.Context(), other.Changelist, 1, []string{onlyPattern}, false))
			if acquired, err := db.AcquireSlots(t.Context(), other.Key, oneSlot); !acquired || err != nil {
				t.Fatalf("acquired %t, %v", acquired, err)
			}
		},
		vacate: func() { finish(t, db, other) },
		shelve: func(p review.Prior) {
			req, err := db.ReserveShelf(t.Context(), "p4", p.Changelist, "event", "run")
			noError(t, err)
			_, err = db.RecordContent(t.Context(), p.Changelist, p.Version, review.Content{Digest: "x", Shelved: true})
			noError(t, err)
			_, err = db.FinishJob(t.Context(), req.Key, review.OutcomeFindings, 1, p.Report)
			noError(t, err)
		},
	}
}

// The fakes store what the database stores: a test with a fake that permits or keeps more
// proves nothing.
func TestFakesStoreAsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, exercise := range map[string]func(*testing.T, side){
		"artifacts": exerciseArtifacts, "token budget": exerciseBudget, "findings": exerciseFindings, "recipients": exerciseRecipients,
		"due deliveries": exerciseDue, "slots": exerciseSlots, "shelves": exerciseShelves,
		"a submitted shelf": func(t *testing.T, s side) { t.Helper(); exerciseSubmit(t, s, true) },
		"a submit":          func(t *testing.T, s side) { t.Helper(); exerciseSubmit(t, s, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, real := fakes(), database(t)
			exercise(t, fake)
			exercise(t, real)
			if len(*real.steps) < 5 || len(*fake.steps) != len(*real.steps) {
				t.Fatalf("%d steps of the fake, %d of the database", len(*fake.steps), len(*real.steps))
			}
			for i, want := range *real.steps {
				if got := (*fake.steps)[i]; got != want {
					t.Errorf("step %d of the fake is\n  %s, of the database\n  %s", i, got, want)
				}
			}
		})
	}
}

func exerciseArtifacts(t *testing.T, s side) {
	t.Helper()
	raw, report := s.artifacts(review.NamespaceRaw), s.artifacts(review.NamespaceReport)
	mine, other := review.Owner{Changelist: 4711, Version: 1}, review.Owner{Changelist: 4711, Version: 2}
	put := func(in artifacts, of review.Owner, body []byte) review.ArtifactRef {
		ref, err := in.Put(t.Context(), of, body)
		s.note("put", err, len(ref))
		return ref
	}
	get := func(in artifacts, of review.Owner, ref review.ArtifactRef) {
		body, err := in.Get(t.Context(), of, ref)
		s.note("get", err, string(body))
	}
	body := []byte("diff")
	first := put(raw, mine, body)
	copy(body, "lost") // the store has its own copy
	again, ofOther, empty, reported := put(raw, mine, []byte("diff")), put(raw, other, []byte("diff")), put(raw, mine, nil), put(report, mine, []byte("diff"))
	s.note("references", nil, first == again, first == ofOther, first == empty, first[3:] == reported[6:])
	get(raw, mine, first)
	get(raw, mine, empty)
	get(raw, other, first)
	get(raw, review.Owner{}, first)
	get(report, mine, first)
	get(raw, mine, reported)
	get(raw, mine, "raw:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff")
	get(raw, mine, "")
	for _, answer := range []string{"", "first", "second"} {
		if answer != "" {
			s.note("put as", raw.PutAs(t.Context(), "name", []byte(answer)))
		}
		body, err := raw.GetAs(t.Context(), "name")
		s.note("get as", err, string(body))
	}
	_, err := report.GetAs(t.Context(), "name")
	s.note("get as from another namespace", err)
}

func exerciseBudget(t *testing.T, s side) {
	t.Helper()
	usage := func(v review.Version) {
		used, tokens, err := s.ReviewUsage(t.Context(), 4711, v)
		s.note("usage", err, v, used, tokens)
	}
	reserve := func(tokens, perDay int) review.Grant {
		g, err := s.ReserveTokens(t.Context(), 4711, 1, tokens, perDay)
		s.note("reserve", err, g.Tokens, g.Refused, g.Day.IsZero())
		usage(1)
		return g
	}
	settle := func(v review.Version, g review.Grant, used review.Usage) {
		s.note("settle", s.SettleTokens(t.Context(), 4711, v, g, used))
		usage(v)
	}
	usage(1)
	settle(1, reserve(100, 0), review.Usage{Calls: 1, PromptTokens: 30, CompletionTokens: 5, CachedTokens: 10, Kept: 1})
	reserve(866, 900)
	reserve(865, 900) // what is left
	reserve(1, 900)
	settle(1, review.Grant{}, review.Usage{Calls: 1, PromptTokens: 7, Estimated: true}) // of no day
	reserve(1, 901)
	settle(2, review.Grant{}, review.Usage{Calls: 1}) // of a review that has reserved none
	s.note("record", s.RecordReview(t.Context(), 4711, 2, review.Record{}))
	usage(2)
	usage(1)
}

func exerciseFindings(t *testing.T, s side) {
	t.Helper()
	finding := func(path string) review.Finding {
		return review.Finding{Path: path, StartLine: 1, EndLine: 1, Severity: review.SeverityLow, Category: review.CategoryCorrectness, Title: "t", Quote: "q"}
	}
	a, b := finding("//depot/a.go"), finding("//depot/b.go")
	report := func(v review.Version, findings ...review.Finding) (tokens []string) {
		reported, err := s.ReportFindings(t.Context(), 4711, v, findings)
		for i, f := range reported {
			tokens = append(tokens, f.FeedbackToken)
			s.note("reported", err, f.Path, len(f.FeedbackToken), findings[i].FeedbackToken)
		}
		return tokens
	}
	first, again, rerun := report(1, a, b), report(1, b, a, a), report(2, a)
	s.note("tokens", nil, first[0] == first[1], again[1] == first[0], again[0] == first[1], again[2] == again[1], rerun[0] == first[0])
	for _, fingerprints := range [][]string{nil, {a.Fingerprint()}} {
		wrong, err := s.WrongFindings(t.Context(), fingerprints)
		s.note("wrong", err, len(wrong))
	}
}

func exerciseRecipients(t *testing.T, s side) {
	t.Helper()
	open := func(req review.Request) {
		_, err := s.OpenJob(t.Context(), req, "run")
		noError(t, err)
	}
	save := func(rs ...review.Recipient) {
		s.note("save", s.SaveRecipients(t.Context(), 4711, 1, rs))
		for _, v := range []review.Version{1, 2} {
			known, err := s.Recipients(t.Context(), 4711, v)
			s.note("recipients", err, v, known)
		}
	}
	ann := review.Recipient{User: "ann", Address: "Ann@corp.test", Role: review.RoleAuthor}
	bob := review.Recipient{User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber}
	eve := review.Recipient{User: "eve", Role: review.RoleUnresolved}
	open(v1)
	save()
	save(eve, bob, ann, bob) // the author first
	save(bob)
	save(ann, review.Recipient{User: "eve", Role: review.RoleOwner})
	save(ann, review.Recipient{User: "eve", Address: "eve@corp.test", Role: review.RoleUnresolved})
}

func exerciseDue(t *testing.T, s side) {
	t.Helper()
	ctx := t.Context()
	_, err := s.OpenJob(ctx, v1, "run1")
	noError(t, err)
	rows, err := s.PrepareDeliveries(ctx, 4711, 1, []string{"ann@corp.test", "bob@corp.test", "cid@corp.test"})
	noError(t, err)
	ann, bob, cid := rows[0], rows[1], rows[2]
	due := func(what string, grace, bounced, watch time.Duration, limit int) {
		found, err := s.DueDeliveries(ctx, grace, bounced, watch, limit)
		var seen []string
		for _, d := range found {
			seen = append(seen, fmt.Sprint(d.Delivery.Key.Recipient, d.Delivery.Status, d.JobState, d.Report, d.Confirmed))
		}
		s.note(what, err, seen)
	}
	check := func(d review.Delivery, confirmed bool) { noError(t, s.RecordCheck(ctx, d.ID, confirmed)) }
	read := func(d review.Delivery) review.Delivery {
		d, err := s.Delivery(ctx, d.ID)
		noError(t, err)
		return d
	}
	begin := func(d review.Delivery) review.Delivery {
		d, err := s.BeginDelivery(ctx, d)
		noError(t, err)
		return d
	}
	due("new", 0, 0, day, 9)
	ann = begin(ann)
	due("begun", 0, 0, day, 9)
	due("in flight", time.Hour, 0, day, 9)
	s.age(2 * time.Hour)
	due("begun two hours ago", time.Hour, 0, day, 9)
	bob = begin(bob)
	noError(t, s.HoldDelivery(ctx, bob))
	due("held", 0, 0, day, 9)
	noError(t, s.AbandonDelivery(ctx, ann))
	due("abandoned", 0, 0, day, 9)
	for i, d := range []review.Delivery{ann, bob, cid} {
		noError(t, s.MarkSent(ctx, d.ID, fmt.Sprint("m", i), "accepted"))
	}
	due("sent while the review runs", 0, 0, day, 9)
	_, err = s.FinishJob(ctx, v1.Key, review.OutcomeFindings, 2, "report:1")
	noError(t, err)
	due("sent", 0, 0, day, 9)
	due("sent a moment ago", 0, time.Hour, day, 9)
	s.age(2 * time.Hour)
	due("sent two hours ago", 0, time.Hour, day, 9)
	due("as many as asked for", 0, time.Hour, day, 2)
	check(ann, false)
	check(bob, true)
	due("two are checked", 0, time.Hour, day, 9)
	s.age(30 * time.Hour)
	due("watched no longer", 0, time.Hour, day, 9)
	check(bob, false) // was confirmed all the same
	s.age(time.Hour)
	due("watched for a week", 0, time.Hour, 7*day, 9)
	_, err = s.RequeueUnproven(ctx, read(cid))
	noError(t, err)
	_, err = s.FailDelivery(ctx, read(ann), failure.RecipientRejected)
	noError(t, err)
	due("one is requeued, one failed", 0, time.Hour, 7*day, 9)
	_, err = s.Delivery(ctx, 99)
	s.note("a row that does not exist", err)
}

func exerciseSlots(t *testing.T, s side) {
	t.Helper()
	_, err := s.OpenJob(t.Context(), v1, "run")
	noError(t, err)
	acquire := func() {
		acquired, err := s.AcquireSlots(t.Context(), v1.Key, oneSlot)
		s.note("acquire", err, acquired)
	}
	acquire() // needs none
	s.occupy()
	s.note("require", s.RequireSlots(t.Context(), 4711, 1, []string{onlyPattern}, false))
	acquire()
	s.vacate()
	acquire()
	acquire() // has it
	_, err = s.FinishJob(t.Context(), v1.Key, review.OutcomeClean, 0, "report:1")
	noError(t, err)
	woken := 0
	err = s.PassOnSlots(t.Context(), v1.Key, oneSlot, func(context.Context, string, string) error { woken++; return nil })
	s.note("pass on", err, woken)
	acquire() // has ended
}

func exerciseShelves(t *testing.T, s side) {
	t.Helper()
	reserve := func(event string) review.Request {
		req, err := s.ReserveShelf(t.Context(), "p4", 4711, event, "debounce")
		s.note("reserve", err, req)
		return req
	}
	reviews := func() {
		keys, err := s.ReviewsOfShelf(t.Context(), 4711)
		s.note("reviews", err, keys)
	}
	open := func(req review.Request) {
		o, err := s.OpenJob(t.Context(), req, "run")
		s.note("open", err, o.Verdict, o.Job.Version, o.Job.Shelved, o.Job.State)
	}
	reviews()
	first := reserve("a")
	reserve("a")
	reviews()
	open(first)
	reviews()
	second := reserve("b")
	reviews()
	s.note("cancel", s.CancelJob(t.Context(), first.Key))
	reviews()
	open(second)
	_, err := s.FinishJob(t.Context(), second.Key, review.OutcomeClean, 0, "report:1")
	s.note("finish", err)
	reviews()
	reserve("b")
	reserve("c")
	reviews()
}

// exerciseSubmit reviews a submit whose shelf was reviewed, or that was never shelved.
func exerciseSubmit(t *testing.T, s side, shelved bool) {
	t.Helper()
	if shelved {
		s.shelve(review.Prior{Changelist: 4700, Version: 1, Report: "report:shelf"})
	}
	_, err := s.OpenJob(t.Context(), v1, "run")
	noError(t, err)
	shelf, err := s.RecordContent(t.Context(), 4711, 1, review.Content{Digest: "x", OldNumber: 4700})
	s.note("content", err, shelf)
	same, err := s.SameAsShelf(t.Context(), 4711, 1)
	if same == nil {
		same = &review.Prior{}
	}
	s.note("same", err, same.Changelist, same.Version, same.Report)
	prior, err := s.EarlierReport(t.Context(), 4711, 1)
	s.note("earlier", err, prior.Changelist, prior.Version, prior.Report)
	for _, report := range []review.ArtifactRef{"report:shelf", "report:mine"} {
		owner, err := s.ReportOwner(t.Context(), review.Owner{Changelist: 4711, Version: 1}, report)
		s.note("owner of "+string(report), err, owner)
	}
}
