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

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/workflows"
)

// record lets the tests write the histories of their workflows. A change to the commands of
// a workflow needs it; CONTRIBUTING.md says until when that is right.
var record = flag.Bool("record", false, "write the histories to "+histories)

const histories = "testdata/histories/current"

// machine matches what names the machine that recorded: the identities of its
// processes, and the sticky queues they listen to.
var machine = regexp.MustCompile(`("identity": "|"name": ")[^"]*[@:][^"]*"`)

// The workflows replay the recorded histories, reset runs among them.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(histories + "/*.json")
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
	replayer.RegisterWorkflow(workflows.SettleShelf)
	return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: executionOf(history),
	})
}

func load(t *testing.T, file string) *historypb.History {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.NoError(t, err)
	history := &historypb.History{}
	testkit.NoError(t, (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(data, history))
	return history
}

// executionOf returns the run whose history it is. The first event of a reset run
// still names the first run; the last reset names this one.
func executionOf(history *historypb.History) workflow.Execution {
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	of := workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
	for _, event := range history.GetEvents() {
		if reset := event.GetWorkflowTaskFailedEventAttributes().GetNewRunId(); reset != "" {
			of.RunID = reset
		}
	}
	return of
}

// keep records the history of the review's current run if -record is set.
func (c cluster) keep(t *testing.T, name string) {
	t.Helper()
	c.keepRun(t, request.Key, name)
}

func (c cluster) keepRun(t *testing.T, workflowID, name string) {
	t.Helper()
	if !*record {
		return
	}
	var history historypb.History
	events := c.GetWorkflowHistory(t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&history)
	testkit.NoError(t, err)
	data = machine.ReplaceAll(data, []byte(`${1}recorded"`))
	testkit.NoError(t, os.MkdirAll(histories, 0o750))
	testkit.NoError(t, os.WriteFile(filepath.Join(histories, name+".json"), data, 0o600))
}
