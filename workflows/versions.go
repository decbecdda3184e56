package workflows

import "go.temporal.io/sdk/workflow"

// adoptsResets names the version since which a run that a reset made records the reset
// before it continues, attempts that ended with their worker's stop do not count, and a
// cancellation waits until a mail that is being sent is recorded.
func adoptsResets(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "adopt-resets", workflow.DefaultVersion, 1) == 1
}

// deadLettersRefusals names the version since which a refused request leaves a dead
// letter.
func deadLettersRefusals(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "dead-letter-refusals", workflow.DefaultVersion, 1) == 1
}

// redactsAgain names the version since which a change is redacted again if the model
// stage has other redaction rules than the redact stage had.
func redactsAgain(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "redact-again", workflow.DefaultVersion, 1) == 1
}
