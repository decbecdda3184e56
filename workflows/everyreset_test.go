package workflows_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A lab is a cluster whose Perforce, model, mail server and webhook know which
// review calls them.
type lab struct {
	cluster
	books *activities.Bookkeeper

	mu      sync.Mutex
	calls   map[string]int // by place and changelist
	fails   map[string]int // how many of the calls will fail
	holds   map[string]chan struct{}
	skipped map[review.Changelist]bool
	wrong   []string // calls of a review whose job was not in progress
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{calls: map[string]int{}, fails: map[string]int{}, holds: map[string]chan struct{}{}, skipped: map[review.Changelist]bool{}}
	l.cluster = newCluster(t, func(stages []any) {
		l.books = stages[0].(*activities.Bookkeeper)
		stages[1].(*activities.Fetcher).Changes = l
		stages[3].(*activities.Model).Reviewer = l
		n := stages[4].(*activities.Notifier)
		n.Post, n.Channels = l, []activities.Channel{{Name: review.ChannelWebhook, Post: l}}
	})
	return l
}

func at(place string, cl review.Changelist) string { return fmt.Sprintf("%s %d", place, cl) }

// call counts a call for a review, whose job must be in progress. It fails as planned.
func (l *lab) call(ctx context.Context, place string, cl review.Changelist) error {
	where := at(place, cl)
	inProgress := ""
	for v := range review.Version(2) {
		if job, err := l.db.Job(ctx, keyOf(cl, v+1)); err == nil && job.State == review.JobInProgress {
			inProgress = job.Key
		}
	}
	l.mu.Lock()
	l.calls[where]++
	if inProgress == "" {
		l.wrong = append(l.wrong, fmt.Sprintf("call of %s: no job is in progress", where))
	}
	hold := l.holds[where]
	fail := l.fails[where] > 0
	l.fails[where]--
	l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if fail {
		return failure.Errorf(failure.AuthDenied, "%s refused the key", place)
	}
	return nil
}

func (l *lab) count(place string, cl review.Changelist) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[at(place, cl)]
}

func (l *lab) Read(ctx context.Context, cl review.Changelist, how review.ReadOptions) (review.Change, error) {
	if err := l.call(ctx, "fetch", cl); err != nil {
		return review.Change{}, err
	}
	change, err := l.fakes.Read(ctx, cl, how)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped[cl] {
		change.SkippedBy = review.SkipRuleTag
	}
	return change, err
}

func (l *lab) Review(ctx context.Context, c redaction.Change, o review.Options) (review.Draft, error) {
	if err := l.call(ctx, "model", c.Number); err != nil {
		return review.Draft{}, err
	}
	return l.fakes.Review(ctx, c, o)
}

func (l *lab) Send(ctx context.Context, _ review.Report, key review.DeliveryKey, _ time.Time) (string, error) {
	place := "mail"
	if key.Channel() != review.ChannelMail {
		place = "webhook"
	}
	if err := l.call(ctx, place, key.Changelist); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls["sent "+fmt.Sprint(key)]++
	return fmt.Sprint(key), nil
}

func (l *lab) Lookup(context.Context, review.DeliveryKey, string, time.Time) (review.Evidence, error) {
	return review.Evidence{State: review.EvidenceAbsent}, nil
}

func keyOf(cl review.Changelist, v review.Version) string { return review.DefaultKey("p4", cl, v) }

func requestOf(cl review.Changelist, v review.Version) review.Request {
	return review.Request{Changelist: cl, Version: v, ServerID: "p4", Key: keyOf(cl, v)}
}

// tasks lists the workflow tasks to which a run can be reset.
func (l *lab) tasks(ctx context.Context, t *testing.T, key, run string) (ids []int64) {
	t.Helper()
	events := l.GetWorkflowHistory(ctx, key, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			ids = append(ids, event.GetEventId())
		}
	}
	return ids
}

// resetTo resets a run and returns the new run.
func (l *lab) resetTo(ctx context.Context, t *testing.T, key, run string, event int64) string {
	t.Helper()
	made, err := l.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: l.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: key, RunId: run},
		Reason: "INC-1", WorkflowTaskFinishEventId: event,
	})
	if err != nil {
		t.Fatalf("reset of %s to event %d: %v", key, event, err)
	}
	return made.GetRunId()
}

// A kind is a way in which a review went before it is reset.
type kind struct {
	failAt  string // the call that fails at first
	times   int    // runs that fail there; default 1 if failAt is set
	skipped bool
	running bool // the reset comes while the model works
	newer   bool // a newer version has succeeded meanwhile
	twice   bool // two resets come at once

	sent      int // notifications in the end: two mails and the webhook
	moreCalls int // most model calls after the reset
}

// A reset to any event of any review leaves at most one notification per recipient and
// version, a record of who did it and why, and a job that is in progress while its run is. It
// calls no model for a review that has succeeded.
func TestResetToEveryEvent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	changelist := review.Changelist(0)
	for name, k := range map[string]kind{
		"succeeded":               {sent: 3},
		"skipped":                 {skipped: true},
		"dead in fetch":           {failAt: "fetch", sent: 3, moreCalls: 1},
		"dead in llm":             {failAt: "model", sent: 3, moreCalls: 1},
		"dead in llm, two resets": {failAt: "model", twice: true, sent: 3, moreCalls: 2},
		"dead in llm again":       {failAt: "model", times: 2, sent: 3, moreCalls: 1},
		"dead in llm, replaced":   {failAt: "model", newer: true, sent: 0},
		"dead in notify":          {failAt: "mail", sent: 3, moreCalls: 1},
		"dead in a channel":       {failAt: "webhook", sent: 3, moreCalls: 1},
		"running":                 {running: true, sent: 3, moreCalls: 1},
	} {
		changelist += 100
		changelist := changelist
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			last := len(l.prepare(ctx, t, k, changelist).tasks)
			for nth := range last {
				t.Run(fmt.Sprintf("task %d of %d", nth+1, last), func(t *testing.T) {
					t.Parallel()
					l.testReset(t, k, changelist+1+review.Changelist(nth), nth)
				})
			}
		})
	}
	t.Cleanup(func() {
		for _, wrong := range l.wrong {
			t.Error(wrong)
		}
	})
}

// prepared is a review before its reset.
type prepared struct {
	run     string
	tasks   []int64
	release func()
}

// prepare runs a review up to the point at which it is reset.
func (l *lab) prepare(ctx context.Context, t *testing.T, k kind, cl review.Changelist) prepared {
	t.Helper()
	key := keyOf(cl, 1)
	l.mu.Lock()
	if k.failAt != "" {
		l.fails[at(k.failAt, cl)] = max(1, k.times)
	}
	l.skipped[cl] = k.skipped
	p := prepared{release: func() {}}
	if k.running {
		hold := make(chan struct{})
		p.release = sync.OnceFunc(func() { close(hold) })
		t.Cleanup(p.release)
		l.holds[at("model", cl)] = hold
	}
	l.mu.Unlock()
	first := l.start(t, requestOf(cl, 1))
	p.run = first.GetRunID()
	if k.running {
		waitUntil(ctx, t, func() bool { return l.count("model", cl) == 1 })
	} else if err := first.Get(ctx, nil); (err != nil) != (k.failAt != "") {
		t.Fatalf("the review ended with %v", err)
	}
	p.tasks = l.tasks(ctx, t, key, p.run)
	if k.times > 1 { // the second run fails, too; the first is reset
		again := l.resetTo(ctx, t, key, p.run, p.tasks[len(p.tasks)-1])
		if err := l.GetWorkflow(ctx, key, again).Get(ctx, nil); err == nil {
			t.Fatal("the replay succeeded")
		}
	}
	if k.newer {
		l.mu.Lock()
		l.fails[at("model", cl)] = 0
		l.mu.Unlock()
		testkit.NoError(t, l.start(t, requestOf(cl, 2)).Get(ctx, nil))
	}
	return p
}

func (l *lab) testReset(t *testing.T, k kind, cl review.Changelist, nth int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, key := l.prepare(ctx, t, k, cl), keyOf(cl, 1)
	calls := l.count("model", cl)
	event := p.tasks[min(nth, len(p.tasks)-1)]
	runs := []string{l.resetTo(ctx, t, key, p.run, event)}
	if k.twice {
		runs = append(runs, l.resetTo(ctx, t, key, p.run, event))
	}
	p.release()
	if err := l.GetWorkflow(ctx, key, runs[len(runs)-1]).Get(ctx, nil); err != nil {
		t.Errorf("the reset run ended with %v", err)
	}
	if more := l.count("model", cl) - calls; more > k.moreCalls {
		t.Errorf("%d model calls after the reset, want at most %d", more, k.moreCalls)
	}
	sent := 0
	l.mu.Lock()
	for to, n := range maps.All(l.calls) {
		var key string
		if _, err := fmt.Sscanf(to, "sent "+fmt.Sprintf("{%d %%s 1 }", cl), &key); err == nil {
			if sent++; n != 1 {
				t.Errorf("%d times %s", n, to)
			}
		}
	}
	l.mu.Unlock()
	if sent != k.sent {
		t.Errorf("%d notifications, want %d", sent, k.sent)
	}
	want := review.JobSucceeded
	if k.newer {
		want = review.JobCanceled
	}
	if job, err := l.db.Job(ctx, key); err != nil || job.State != want {
		t.Errorf("the job is %s, %v, want %s", job.State, err, want)
	}
	l.wantRecords(t, key, runs)
}

// wantRecords fails unless the database has the identity and the reason that Temporal
// recorded for the last run, and nothing is left to an operator. The identity is that of
// the server: it does not pass on the caller's.
func (l *lab) wantRecords(t *testing.T, key string, runs []string) {
	t.Helper()
	var audited, letters, resolved, records int
	l.db.Scan(t, `select
		(select count(*) from criticizer.audit_log where object = 'workflow:' || $1 and action = 'replay' and claimed <> ''
			and detail->>'reason' = 'INC-1' and detail->>'new_run' = $2),
		(select count(*) from criticizer.dead_letters where workflow_id = $1),
		(select count(*) from criticizer.dead_letters where workflow_id = $1 and state = 'resolved' and resolved_by <> '' and resolution = 'INC-1'),
		(select count(distinct dead_letter_id) from criticizer.replays join criticizer.dead_letters l on l.id = dead_letter_id
			where l.workflow_id = $1 and who <> '' and reason = 'INC-1')`,
		[]any{key, runs[len(runs)-1]}, &audited, &letters, &resolved, &records)
	if audited == 0 || records != letters || resolved != letters {
		t.Errorf("%d audit entries; of %d dead letters %d have a replay record and %d are resolved", audited, letters, records, resolved)
	}
}

func waitUntil(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("waited for too long")
		}
	}
}
