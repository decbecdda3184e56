package e2e

import (
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// Behind fetch, which learns who wrote it, a bot's change waits for those of people.
func TestBotsWaitForPeople(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	in.env = append(in.env, "CRITICIZER_MAIL_BOTS=ali*")
	in.startWorker()
	a := in.mustStart("--wait", "1")
	got := map[string]int32{}
	for _, event := range in.history(a.WorkflowID, "") {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			got[scheduled.GetActivityId()] = scheduled.GetPriority().GetPriorityKey()
		}
	}
	if want := map[string]int32{"fetch": 0, "redact": 5, "critique": 5, "notify": 5}; !maps.Equal(got, want) {
		t.Errorf("priorities are %v, want %v", got, want)
	}
	if found, _ := in.doctor(nil); !slices.ContainsFunc(found, func(d diagnosis) bool { return strings.Contains(d.Detail, "mail.bots") }) {
		t.Errorf("doctor does not say whether the server keeps priorities: %+v", found)
	}
}

// serverWith starts a Temporal server with the given setting, and returns a namespace
// of it. Its task queues have one partition: the order of what waits is then one.
func serverWith(t *testing.T, setting string) temporalns.Namespace {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	args := []string{"server", "start-dev", "--ip", "127.0.0.1", "--port", port, "--headless", "--log-level", "error"}
	for _, s := range []string{setting, "matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1",
		"system.forceSearchAttributesCacheRefreshOnRead=true"} {
		args = append(args, "--dynamic-config-value", s)
	}
	server := exec.Command(temporalCommand(t), args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	waitFor(t, "the Temporal server", func() bool {
		c, err := client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(discard)})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	n, _ := temporalnstest.NewAt(t, address)
	return n
}

// Where bots' changes wait for a worker, those of people that come later are taken
// before them, if the server keeps priorities; and whether it does can be told.
func TestPeopleOvertakeBots(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setting string
		setKey  string
	}{
		"a server that keeps priorities": {"matching.useNewMatcher=true", "pppbbbbbbbbbb"},
		"a server that passes them over": {"matching.useNewMatcher=false", "bbbbbbbbbbppp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := serverWith(t, tt.setting)
			if got := redactedInOrder(t, n); got != tt.setKey {
				t.Errorf("redacted were %s, want %s", got, tt.setKey)
			}
			if keeps, err := n.KeepsPriorities(t.Context()); err != nil || keeps != strings.HasPrefix(tt.setKey, "p") {
				t.Errorf("the server is said to keep priorities: %t, %v", keeps, err)
			}
		})
	}
}

// redactedInOrder lets the changes of ten bots, and then of three people, wait for
// redaction, and returns in which order they get it.
func redactedInOrder(t *testing.T, n temporalns.Namespace) string {
	t.Helper()
	const bots, people = 10, 3
	who := func(p activities.StageParams) string {
		if p.Request.Changelist <= bots {
			return "b"
		}
		return "p"
	}
	serveFakes(t, n, activities.QueueBookkeeping, worker.Options{}, map[string]any{
		"OpenJob": func(context.Context, review.Request) (review.Opening, error) {
			return review.Opening{Verdict: review.VerdictRun, Job: review.Job{Version: 1}}, nil
		},
	})
	serveFakes(t, n, activities.QueueFetch, worker.Options{}, map[string]any{
		"Fetch": func(_ context.Context, p activities.StageParams) (activities.FetchResult, error) {
			return activities.FetchResult{ByBot: who(p) == "b"}, nil
		},
	})
	for cl := range review.Changelist(bots + people) {
		startReview(t, n, cl+1)
		if cl+1 >= bots { // the bots' are there before the first of the people's
			waitFor(t, "the tasks that wait", func() bool {
				state, err := n.QueueState(t.Context(), activities.QueueRedact)
				return err == nil && state.Waiting == int64(cl+1)
			})
		}
	}
	redacted := make(chan string, bots+people)
	serveFakes(t, n, activities.QueueRedact, worker.Options{MaxConcurrentActivityExecutionSize: 1, MaxConcurrentActivityTaskPollers: 1}, map[string]any{
		"Redact": func(_ context.Context, p activities.StageParams) (activities.RedactResult, error) {
			redacted <- who(p)
			return activities.RedactResult{}, nil
		},
	})
	order := ""
	for range bots + people {
		order += <-redacted
	}
	return order
}

// serveFakes serves a task queue with reviews and fakes of activities.
func serveFakes(t *testing.T, n temporalns.Namespace, queue string, options worker.Options, fakes map[string]any) {
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

func startReview(t *testing.T, n temporalns.Namespace, cl review.Changelist) {
	t.Helper()
	req := review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
	if _, err := n.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: req.Key, TaskQueue: activities.QueueBookkeeping}, workflows.ReviewChangelist, req); err != nil {
		t.Fatal(err)
	}
}
