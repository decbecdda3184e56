// Package contract is how other programs address our workflows: task queues, workflows,
// signals, search attributes and the options of a start. All of them are wire format. The
// package imports neither workflows nor activities, so that the program of the triggers
// stays small.
package contract

import (
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
)

// The task queues: workers serve a queue by its name, and operators pause and rate-limit it.
const (
	QueueBookkeeping = "criticizer"
	QueueFetch       = "criticizer-fetch"
	QueueRedact      = "criticizer-redact"
	QueueLLM         = "criticizer-llm"
	QueueNotify      = "criticizer-notify"
	QueueRecords     = "criticizer-records" // of stage notify, without the mail server
	QueueRetention   = "criticizer-retention"
)

// workflowsRole is the role of workers that serves [QueueBookkeeping].
const workflowsRole = "workflows"

// QueueOf is the task queue of a role of workers, a stage or a channel by its name. With a
// queue of its own, a channel that is down has its own circuit breaker and retries, and delays
// no mail.
func QueueOf[Name ~string](name Name) string {
	if name == workflowsRole {
		return QueueBookkeeping
	}
	return QueueBookkeeping + "-" + string(name)
}

// StageOf is the inverse of [QueueOf], and the name of a task queue in metrics and commands.
func StageOf(queue string) string {
	if queue == QueueBookkeeping {
		return workflowsRole
	}
	return strings.TrimPrefix(queue, QueueBookkeeping+"-")
}

// ReviewQueues lists the task queues that every review needs.
func ReviewQueues() []string {
	queues := []string{QueueBookkeeping}
	for _, s := range review.Stages() {
		if s == review.StageLLM {
			queues = append(queues, QueueRedact) // its first activity
		}
		queues = append(queues, QueueOf(s))
	}
	return queues
}

// WatchedQueues lists the task queues whose backlog is shown: [ReviewQueues], and those of the
// channels.
func WatchedQueues() []string {
	queues := ReviewQueues()
	for _, c := range review.Channels() {
		queues = append(queues, QueueOf(c))
	}
	return queues
}

// HasBreaker reports whether a task queue has a circuit breaker, which belongs to a process
// (internal/breaker).
func HasBreaker(queue string) bool {
	return queue != QueueBookkeeping && slices.Contains(WatchedQueues(), queue)
}

// The workflows of package workflows that other programs start, and the signal to
// [SettleShelf]: the changelist was shelved again.
const (
	ReviewChangelist = "ReviewChangelist"
	SettleShelf      = "SettleShelf"
	ShelfSignal      = "shelved"
)

// A Shelf is the input of [SettleShelf].
type Shelf struct {
	ServerID   string            `json:"server_id"`
	Changelist review.Changelist `json:"changelist"`
	// Quiet is the time without another shelve event before the shelf is reviewed.
	Quiet time.Duration `json:"quiet"`
	// At is when the trigger saw the last shelve event, zero if that is not known. The
	// signals carry it.
	At time.Time `json:"at,omitzero"`
}

// The search attributes of reviews.
var (
	AttributeChangelist    = temporal.NewSearchAttributeKeyInt64("CriticizerChangelist")
	AttributeReviewVersion = temporal.NewSearchAttributeKeyInt64("CriticizerReviewVersion")
	AttributeStage         = temporal.NewSearchAttributeKeyKeyword("CriticizerStage")
	AttributeErrorClass    = temporal.NewSearchAttributeKeyKeyword("CriticizerErrorClass")
	AttributeOutcome       = temporal.NewSearchAttributeKeyKeyword("CriticizerOutcome")
	AttributeEscalated     = temporal.NewSearchAttributeKeyBool("CriticizerEscalated")
)

// Attributes lists the search attributes that a namespace must have.
func Attributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{
		AttributeChangelist, AttributeReviewVersion, AttributeStage,
		AttributeErrorClass, AttributeOutcome, AttributeEscalated,
	}
}

// StartOptions starts the review of req once: the workflow ID is the idempotency key, and
// Temporal rejects a second start, whether the first run is open or closed.
func StartOptions(req review.Request) client.StartWorkflowOptions {
	of := "changelist"
	if req.Shelved {
		of = "the shelf of changelist"
	}
	return client.StartWorkflowOptions{
		ID:                                       req.Key,
		TaskQueue:                                QueueBookkeeping,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			AttributeChangelist.ValueSet(int64(req.Changelist)), AttributeReviewVersion.ValueSet(int64(req.Version))),
		StaticSummary: fmt.Sprintf("Review of %s %d", of, req.Changelist),
		StaticDetails: fmt.Sprintf("Server %s, requested review version %d", req.ServerID, req.Version),
	}
}
