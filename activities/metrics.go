package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
)

// The figures that activities count. docs/observability.md has them as they are
// exported: with the unit, or _total, behind the name.
const (
	metricAttempt    = "criticizer_attempt"
	metricStage      = "criticizer_stage"
	metricRedactions = "criticizer_redactions"
	metricCalls      = "criticizer_model_calls"
	metricTokens     = "criticizer_model_tokens"
)

// measureAttempt takes the time of one attempt and, if that was the last, of
// all attempts with the waits between them. told is what Temporal is told.
func measureAttempt(ctx context.Context, began time.Time, told error) {
	info := activity.GetInfo(ctx)
	metrics := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"stage": StageOf(info.TaskQueue)})
	metrics.WithTags(map[string]string{"result": resultOf(told)}).Timer(metricAttempt).Record(time.Since(began))
	if told == nil {
		metrics.Timer(metricStage).Record(time.Since(info.ScheduledTime))
	}
}

// StageOf is what a task queue is known as where it is shown: a stage or a channel.
func StageOf(queue string) string {
	if queue == QueueBookkeeping {
		return "workflows"
	}
	return strings.TrimPrefix(queue, QueueBookkeeping+"-")
}

// resultOf is ok, canceled, or the class of the failure.
func resultOf(told error) string {
	failed, ok := errors.AsType[*temporal.ApplicationError](told)
	switch {
	case told == nil:
		return "ok"
	case !ok:
		return "canceled"
	}
	return failed.Type()
}

// countRedactions counts what was kept from the model, by class.
func countRedactions(ctx context.Context, redactions []review.Redaction) {
	for _, r := range redactions {
		activity.GetMetricsHandler(ctx).WithTags(map[string]string{"class": r.Class}).Counter(metricRedactions).Inc(int64(r.Count))
	}
}

// countUsage counts what a review cost.
func countUsage(ctx context.Context, usage review.Usage) {
	metrics := activity.GetMetricsHandler(ctx)
	metrics.Counter(metricCalls).Inc(int64(usage.Calls))
	for kind, tokens := range map[string]int{
		"prompt": usage.PromptTokens - usage.CachedTokens, "cached": usage.CachedTokens, "completion": usage.CompletionTokens,
	} {
		metrics.WithTags(map[string]string{"kind": kind}).Counter(metricTokens).Inc(int64(tokens))
	}
}
