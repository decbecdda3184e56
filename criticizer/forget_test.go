package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
	"github.com/criticizer/criticizer/workflows/contract"
)

// What a changelist left is deleted, that of another stays, and a later trigger sends nothing.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	conn := s.database.Conn(t)
	stored := func(cl review.Changelist) (text string) {
		t.Helper()
		row := conn.QueryRow(t.Context(), `select concat_ws(' ',
			(select count(*) from raw.artifacts where substring(body for 9) = '\x01' || int8send($1)),
			(select count(*) from redacted.artifacts where substring(body for 9) = '\x01' || int8send($1)),
			(select count(*) from report.artifacts where substring(body for 9) = '\x01' || int8send($1)),
			(select count(*) from criticizer.findings where changelist_id = $1), (select count(*) from criticizer.recipients where changelist_id = $1),
			(select count(*) from criticizer.deliveries where changelist_id = $1 and recipient like '%@%'), (select count(*) from criticizer.dead_letters where changelist_id = $1))`, int64(cl))
		testkit.NoError(t, row.Scan(&text))
		return text
	}
	s.review(4711)
	s.review(300, errDenied)
	s.review(5)
	if got := stored(4711) + "; " + stored(300); got != "1 1 1 1 2 2 0; 1 1 0 0 2 0 1" {
		t.Fatalf("before, stored is %s", got)
	}
	other := stored(5)
	contains(t, s.must("forget", "4711", "--reason", "PRIV-3: a customer's data"), "changelist 4711 is forgotten: 3 artifacts, 1 finding, 2 recipients, 1 run in Temporal")
	contains(t, s.must("forget", "300", "--reason", "PRIV-3: a customer's data"), "changelist 300 is forgotten: 2 artifacts, 0 findings")
	if got := stored(4711) + "; " + stored(300) + "; " + stored(5); got != "0 0 0 0 0 0 0; 0 0 0 0 0 0 0; "+other {
		t.Errorf("after, stored is %s", got)
	}
	contains(t, s.must("status", "4711"), "succeeded, findings, 1 finding, forgotten", "forgotten by olga@", "PRIV-3: a customer's data")
	contains(t, s.must("why", "300"), "forgotten by olga@")
	checkRefusal(t, "a rerun", s.criticizer("review", "rerun", "4711", "--gaps", "--reason", "INC-42"), 1, "the review of changelist 4711 is forgotten")
	if out := s.must("status", "4711", "--json") + s.must("status", "300", "--json") + s.must("delivery", "list", "--changelist", "4711", "--json"); strings.Contains(out, "@corp.test") {
		t.Errorf("an address is left: %s", out)
	}
	for _, cl := range []review.Changelist{4711, 300} {
		testkit.Eventually(t, "deleted in Temporal", func() bool {
			_, err := s.runs.current(t.Context(), requestFor(cl).Key)
			return errors.Is(err, errForgotten)
		})
	}

	calls, mails := s.world.Calls("Review"), s.world.Calls("Send")
	for _, cl := range []review.Changelist{4711, 300} { // the trigger comes again
		run, err := s.runs.ExecuteWorkflow(t.Context(), contract.StartOptions(requestFor(cl)), workflows.ReviewChangelist, requestFor(cl))
		testkit.NoError(t, err)
		var result review.Result
		if err := run.Get(t.Context(), &result); err != nil || !result.Duplicate || !result.Job.Forgotten {
			t.Errorf("the trigger is answered %+v, %v", result, err)
		}
	}
	if s.world.Calls("Review") != calls || s.world.Calls("Send") != mails || stored(4711) != "0 0 0 0 0 0 0" {
		t.Error("the trigger made a review or a mail")
	}
}

func TestForgetIsRefused(t *testing.T) {
	t.Parallel()
	r := newRefusal(t)
	forget := func() answer { return say(t, r.env, "forget", "4711", "--reason", "PRIV-3") }
	unknown := say(t, r.env, "forget", "1", "--reason", "PRIV-3")
	checkRefusal(t, "an unknown changelist", unknown, 1, "it has no review")
	contains(t, unknown.err, "correct the number")
	checkRefusal(t, "no reason", say(t, r.env, "forget", "4711"), 2, `"reason" not set`)
	rows, err := r.notify.PrepareDeliveries(t.Context(), 4711, 1, []string{"carol@corp.test"})
	r.must(err)
	carol, err := r.notify.BeginDelivery(t.Context(), rows[2])
	r.must(err)
	checkRefusal(t, "a mail in doubt", forget(), 1, "is in doubt")
	r.must(r.notify.AbandonDelivery(t.Context(), carol))
	r.env["CRITICIZER_TEMPORAL_ADDRESS"] = "127.0.0.1:1"
	checkRefusal(t, "without Temporal", forget(), 1, "Temporal's history of it is not deleted")
	var left []deliveryView
	if got := r.run("list", "--json"); json.Unmarshal([]byte(got.out), &left) != nil || len(left) != 3 || strings.Contains(got.out, "@") || strings.Contains(got.out, `"pending"`) {
		t.Errorf("left are %+v", got)
	}
}

// closedRuns is a Temporal server whose list has a run that it has deleted, and a paused one.
type closedRuns struct {
	client.Client
	service deletion
}

// A deletion records the runs that a Temporal server deletes.
type deletion struct {
	workflowservice.WorkflowServiceClient
	runs []string
}

func (c *closedRuns) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	list := &workflowservice.ListWorkflowExecutionsResponse{}
	for run, status := range map[string]enumspb.WorkflowExecutionStatus{
		"gone": enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "failed": enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, "paused": enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
	} {
		list.Executions = append(list.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: run}, Status: status})
	}
	return list, nil
}

func (c *closedRuns) WorkflowService() workflowservice.WorkflowServiceClient { return &c.service }

func (d *deletion) DeleteWorkflowExecution(_ context.Context, r *workflowservice.DeleteWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	if r.GetWorkflowExecution().GetRunId() == "gone" {
		return nil, serviceerror.NewNotFound("workflow execution not found")
	}
	d.runs = append(d.runs, r.GetWorkflowExecution().GetRunId())
	return nil, nil
}

// A paused run is open and stays; one that is deleted already does not stop the others.
func TestForgetDeletesClosedRuns(t *testing.T) {
	t.Parallel()
	server := &closedRuns{}
	deleted, err := runs{Namespace: temporal.Namespace{Client: server}}.forget(t.Context(), 4711)
	if err != nil || deleted != 1 || !slices.Equal(server.service.runs, []string{"failed"}) {
		t.Errorf("deleted %d runs, %q, error %v; want the failed one", deleted, server.service.runs, err)
	}
}
