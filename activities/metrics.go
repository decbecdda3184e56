package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// The metrics of activities. docs/observability.md has their exported names: with the
// unit, or _total, appended.
const (
	metricAttempt    = "criticizer_attempt"
	metricStage      = "criticizer_stage"
	metricRedactions = "criticizer_redactions"
	metricProblems   = "criticizer_perforce_problems"
	metricCalls      = "criticizer_model_calls"
	metricUnproven   = "criticizer_model_unproven_answers"
	metricTokens     = "criticizer_model_tokens"
	metricFixes      = "criticizer_fixes"
)

// measureAttempt records the duration of an attempt and, if it succeeded, of all attempts
// with the delays between them. err is the error that is reported to Temporal.
func measureAttempt(ctx context.Context, began time.Time, err error) {
	info := activity.GetInfo(ctx)
	metrics := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"stage": contract.StageOf(info.TaskQueue)})
	metrics.WithTags(map[string]string{"result": resultOf(err)}).Timer(metricAttempt).Record(time.Since(began))
	if err == nil {
		metrics.Timer(metricStage).Record(time.Since(info.ScheduledTime))
	}
}

// countProblems counts what an administrator of the Perforce server has to solve. It
// exports a count of 0, so that the first problem is an increase.
func countProblems(ctx context.Context, kind string, n int) {
	activity.GetMetricsHandler(ctx).WithTags(map[string]string{"kind": kind}).Counter(metricProblems).Inc(int64(n))
}

// resultOf is ok, canceled, or the class of the failure.
func resultOf(err error) string {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return "ok"
	case !ok:
		return "canceled"
	}
	return app.Type()
}

// countRedactions counts masked secrets by class.
func countRedactions(ctx context.Context, redactions []review.Redaction) {
	for _, r := range redactions {
		activity.GetMetricsHandler(ctx).WithTags(map[string]string{"class": r.Class}).Counter(metricRedactions).Inc(int64(r.Count))
	}
}

// countUsage counts model calls and tokens.
func countUsage(ctx context.Context, usage review.Usage) {
	metrics := activity.GetMetricsHandler(ctx)
	metrics.Counter(metricCalls).Inc(int64(usage.Calls))
	metrics.Counter(metricUnproven).Inc(int64(usage.Unproven))
	for kind, tokens := range map[string]int{
		"prompt": usage.PromptTokens - usage.CachedTokens, "cached": usage.CachedTokens, "completion": usage.CompletionTokens,
	} {
		metrics.WithTags(map[string]string{"kind": kind}).Counter(metricTokens).Inc(int64(tokens))
	}
}

// countFixes counts the replacements that failed their check, by reason, and the others.
func countFixes(ctx context.Context, d review.Draft) {
	count := func(result string, n int) {
		activity.GetMetricsHandler(ctx).WithTags(map[string]string{"result": result}).Counter(metricFixes).Inc(int64(n))
	}
	for reason, n := range d.FixesDropped {
		count(strings.ReplaceAll(string(reason), " ", "_"), n)
	}
	for _, f := range d.Findings {
		if f.ReplacementChecked {
			count("ok", 1)
		}
	}
}
