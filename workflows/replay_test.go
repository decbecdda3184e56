package workflows_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	rewriteworkflows "github.com/criticizer/criticizer/rewrite/workflows"
	"github.com/criticizer/criticizer/workflows"
)

// record names the folder of testdata/histories to which the tests write the histories
// of their workflows. Each folder holds the histories of one deployed behavior.
//
// A change to the commands of a workflow needs three steps, or running workflows fail:
//
//  1. Name the change: a function such as
//     func waitsForSlots(ctx workflow.Context) bool {
//     return workflow.GetVersion(ctx, "wait-for-slots", workflow.DefaultVersion, 1) == 1
//     }
//     in versions.go, and branch on it. The change ID is part of the histories.
//  2. Record a new folder named for the change: go test ./workflows -record=wait-for-slots
//  3. Leave the other folders as they are. A history that does not replay is a review,
//     or a dead letter, that the new code cannot finish.
var record = flag.String("record", "", "write the histories to this folder of testdata/histories")

const histories = "testdata/histories"

// machine matches what names the machine that recorded: the identities of its
// processes, and the sticky queues they listen to.
var machine = regexp.MustCompile(`("identity": "|"name": ")[^"]*[@:][^"]*"`)

// The workflows replay the recorded histories, those of reset runs among them.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(histories + "/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories in %s: %v", histories, err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, histories+"/"), func(t *testing.T) {
			t.Parallel()
			if err := replay(load(t, file)); err != nil {
				t.Error(err)
			}
		})
	}
}

// replay runs the workflows of today over a history, however slow the machine is.
func replay(history *historypb.History) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		return err
	}
	replayer.RegisterWorkflow(workflows.ReviewChangelist)
	replayer.RegisterWorkflow(workflows.CircuitBreaker)
	replayer.RegisterWorkflow(workflows.CatchUp)
	replayer.RegisterWorkflow(workflows.SettleShelf)
	rewriteworkflows.Register(replayer)
	return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: request.Key, RunID: runOf(history)},
	})
}

func load(t *testing.T, file string) *historypb.History {
	t.Helper()
	data, err := os.ReadFile(file)
	noError(t, err)
	history := &historypb.History{}
	noError(t, (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(data, history))
	return history
}

// runOf returns the run whose history it is. The first event of a reset run
// still names the first run; the last reset names this one.
func runOf(history *historypb.History) string {
	run := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, event := range history.GetEvents() {
		if reset := event.GetWorkflowTaskFailedEventAttributes().GetNewRunId(); reset != "" {
			run = reset
		}
	}
	return run
}

// keep records the history of the review's current run if -record is set.
func (c cluster) keep(t *testing.T, name string) {
	t.Helper()
	c.keepRun(t, request.Key, name)
}

func (c cluster) keepRun(t *testing.T, workflowID, name string) {
	t.Helper()
	if *record == "" {
		return
	}
	var history historypb.History
	events := c.GetWorkflowHistory(t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		noError(t, err)
		history.Events = append(history.Events, event)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&history)
	noError(t, err)
	data = machine.ReplaceAll(data, []byte(`${1}recorded"`))
	folder := filepath.Join(histories, *record)
	noError(t, os.MkdirAll(folder, 0o750))
	noError(t, os.WriteFile(filepath.Join(folder, name+".json"), data, 0o600))
}
