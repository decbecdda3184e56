package workflows

import "go.temporal.io/sdk/workflow"

// adoptsResets names the change with which a run that was made by a reset records that
// before it continues, attempts that the worker's stop ended do not count, and a
// cancellation waits for mails that are being sent.
func adoptsResets(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "adopt-resets", workflow.DefaultVersion, 1) == 1
}

// deadLettersRefusals names the change with which a request that is refused leaves a dead
// letter.
func deadLettersRefusals(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "dead-letter-refusals", workflow.DefaultVersion, 1) == 1
}

// redactsAgain names the change with which a review whose change was redacted under other
// rules than those of the model stage is redacted again.
func redactsAgain(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "redact-again", workflow.DefaultVersion, 1) == 1
}
