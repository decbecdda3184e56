package workflows_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/activities"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/rewrite/workflows"
)

// record lets [TestRuns] write the histories of its workflows. A change to the commands of a
// workflow needs it; CONTRIBUTING.md says until when that is right.
var record = flag.Bool("record", false, "write the histories to "+histories)

const histories = "testdata/histories"

// Every way in which a run of the rewrite queue ends, on a real server: each worker looks for work
// first, does its own, and records the run, even if it failed or was canceled (rewrite 10).
func TestRuns(t *testing.T) {
	t.Parallel()
	denied := temporal.NewNonRetryableApplicationError("no", "CONFIG_INVALID", nil)
	for name, tt := range map[string]struct {
		worker  rewrite.Worker
		idle    bool
		failure error
		cancel  bool
	}{
		"submitted": {worker: rewrite.Submitter},
		"collected": {worker: rewrite.Collector},
		"executed":  {worker: rewrite.AsyncLane},
		"skipped":   {worker: rewrite.Submitter, idle: true},
		"failed":    {worker: rewrite.AsyncLane, failure: denied},
		"canceled":  {worker: rewrite.Collector, cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, _ := temporaltest.New(t)
			working := make(chan struct{}, 1)
			var mu sync.Mutex
			var did []string
			note := func(step string) {
				mu.Lock()
				defer mu.Unlock()
				did = append(did, step)
			}
			work := func(step string) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					note(step)
					working <- struct{}{}
					if tt.cancel {
						<-ctx.Done()
					}
					return tt.failure
				}
			}
			var options worker.Options
			if tt.cancel { // a canceled attempt learns of it from its heartbeats
				options.Interceptors = []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: func(s string) string { return s }, Grace: time.Minute}}
			}
			w := worker.New(n.Client, activities.Queue, options)
			workflows.Register(w)
			for step, fake := range map[string]any{
				"BeginRun": func(_ context.Context, w rewrite.Worker) (bool, error) {
					note("begin " + string(w))
					return !tt.idle, nil
				},
				"SubmitBatches": work("submit"), "CollectBatches": work("collect"), "ExecuteJobs": work("execute"),
				"FinishRun": func(context.Context) (store.Run, error) {
					note("finish")
					return store.Run{Worker: tt.worker, ClaimedCount: 3}, nil
				},
			} {
				w.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: step})
			}
			testkit.NoError(t, w.Start())
			t.Cleanup(w.Stop)
			run, err := n.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: activities.Queue}, string(tt.worker))
			testkit.NoError(t, err)
			if tt.cancel {
				<-working
				testkit.NoError(t, n.CancelWorkflow(t.Context(), name, ""))
			}
			var done store.Run
			err = run.Get(t.Context(), &done)
			var canceled *temporal.CanceledError
			if errors.As(err, &canceled) != tt.cancel || (err != nil) != (tt.cancel || tt.failure != nil) {
				t.Errorf("run ended with %v", err)
			}
			steps := map[rewrite.Worker]string{rewrite.Submitter: "submit", rewrite.Collector: "collect", rewrite.AsyncLane: "execute"}
			want, event := []string{"begin " + string(tt.worker), steps[tt.worker], "finish"}, ""
			if tt.idle {
				want, event = want[:1], string(tt.worker)+" skipped: no pending items"
			}
			if !slices.Equal(did, want) || done.Event != event {
				t.Errorf("did %v, want %v; the run is %+v", did, want, done)
			}
			if *record {
				keep(t, n.Client, name)
			}
		})
	}
}

// The workflows replay the recorded histories.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(histories + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories in %s: %v", histories, err)
	}
	for _, file := range files {
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
		testkit.NoError(t, err)
		workflows.Register(replayer)
		if err := replayer.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// machine matches what names the machine that recorded.
var machine = regexp.MustCompile(`("identity": "|"name": ")[^"]*[@:][^"]*"`)

// keep writes the history of a workflow.
func keep(t *testing.T, c client.Client, id string) {
	t.Helper()
	var history historypb.History
	events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&history)
	testkit.NoError(t, err)
	testkit.NoError(t, os.WriteFile(filepath.Join(histories, id+".json"), machine.ReplaceAll(data, []byte(`${1}recorded"`)), 0o600))
}
