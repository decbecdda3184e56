package e2e

import (
	"context"
	"maps"
	"os"
	"regexp"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// After fetch, which finds the author, the activities for a bot's change have a lower
// priority than those for people.
func TestBotsWaitForPeople(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.env = append(in.env, "CRITICIZER_MAIL_BOTS=ali*", "CRITICIZER_MAIL_OWNERS=//depot/... lead@corp.test") // a bot's findings need a reader
	in.startWorker()
	a := in.mustStart("--wait", "1")
	got, authors := map[string]int32{}, map[string]string{}
	for _, event := range in.history(a.WorkflowID, "") {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			got[scheduled.GetActivityId()] = scheduled.GetPriority().GetPriorityKey()
			authors[scheduled.GetActivityId()] = scheduled.GetPriority().GetFairnessKey()
		}
	}
	if want := map[string]int32{"fetch": 0, "redact": 5, "llm": 5, "notify": 5}; !maps.Equal(got, want) {
		t.Errorf("priorities are %v, want %v", got, want)
	}
	// A pseudonym of 16 digits.
	if a := authors["redact"]; authors["fetch"] != "" || len(a) != 16 || a != authors["llm"] || a != authors["notify"] {
		t.Errorf("fairness keys are %v, want one for all activities after fetch", authors)
	}
}

// If the server supports priorities, changes of people overtake bots' changes that wait
// for a worker. If the server supports fairness, three changes of a person do not wait for all
// ten of another.
func TestPeopleOvertakeBots(t *testing.T) {
	t.Parallel()
	type server struct {
		setting string // none: the one of make test-server
		bots    bool   // the ten changes are a bot's
		want    string
	}
	const inTurn = "^b{0,3}pb{1,2}pb{1,2}pb+$"
	servers := map[string]server{
		"a server with priorities": {"matching.useNewMatcher=true", true, "^p{3}b{10}$"},
		"a server with fairness":   {"matching.enableFairness=true", false, inTurn},
	}
	if os.Getenv(serverVariable) != "" {
		servers["the server of make test-server"] = server{"", false, inTurn}
	}
	for name, tt := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With one partition per task queue, the order of its tasks is defined.
			address := os.Getenv(temporaltest.AddressVariable)
			if tt.setting != "" {
				address = startTemporal(t, tt.setting, "matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1").Address
			}
			n, _ := temporaltest.NewAt(t, temporal.Config{Address: address}, contract.Attributes()...)
			if got := redactedInOrder(t, n, tt.bots); !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("the order is %s, want %s", got, tt.want)
			}
		})
	}
}

// redactedInOrder queues ten changes of b, which may be a bot, and then three of the person
// p, for redaction, and returns the order in which a worker redacts them.
func redactedInOrder(t *testing.T, n temporal.Namespace, bots bool) string {
	t.Helper()
	const first, last = 10, 3
	who := func(p activities.StageParams) string {
		if p.Request.Changelist <= first {
			return "b"
		}
		return "p"
	}
	serveFakes(t, n, contract.QueueBookkeeping, worker.Options{}, map[string]any{
		"OpenJob": func(context.Context, review.Request) (review.OpenResult, error) {
			return review.OpenResult{Decision: review.DecisionRun, Job: review.Job{Version: 1}}, nil
		},
	})
	serveFakes(t, n, contract.QueueFetch, worker.Options{}, map[string]any{
		"Fetch": func(_ context.Context, p activities.StageParams) (activities.FetchResult, error) {
			return activities.FetchResult{ByBot: bots && who(p) == "b", Author: who(p)}, nil
		},
	})
	for cl := range review.Changelist(first + last) {
		startReview(t, n, cl+1)
		if cl+1 >= first { // all tasks of b are queued before the first of p
			waitFor(t, "the queued tasks", func() bool {
				state, err := n.QueueState(t.Context(), contract.QueueRedact, false)
				return err == nil && state.Waiting == int64(cl+1)
			})
		}
	}
	redacted := make(chan string, first+last)
	serveFakes(t, n, contract.QueueRedact, worker.Options{MaxConcurrentActivityExecutionSize: 1, MaxConcurrentActivityTaskPollers: 1}, map[string]any{
		"Redact": func(_ context.Context, p activities.StageParams) (activities.RedactResult, error) {
			redacted <- who(p)
			return activities.RedactResult{}, nil
		},
	})
	order := ""
	for range first + last {
		order += <-redacted
	}
	return order
}

// serveFakes runs a worker with the review workflow and fake activities.
func serveFakes(t *testing.T, n temporal.Namespace, queue string, options worker.Options, fakes map[string]any) {
	t.Helper()
	w := worker.New(n.Client, queue, options)
	w.RegisterWorkflow(workflows.ReviewChangelist)
	for name, fake := range fakes {
		w.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func startReview(t *testing.T, n temporal.Namespace, cl review.Changelist) {
	t.Helper()
	req := review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
	if _, err := n.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: req.Key, TaskQueue: contract.QueueBookkeeping}, workflows.ReviewChangelist, req); err != nil {
		t.Fatal(err)
	}
}
