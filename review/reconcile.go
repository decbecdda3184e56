package review

// A DueDelivery is an outbox row for reconciliation, with the facts about its review
// (notification 8.2: reconcile unsent, unfinished and sent rows with the provider).
type DueDelivery struct {
	Delivery
	JobState JobState
	// Report is the report of a succeeded review, or empty.
	Report ArtifactRef
	// Confirmed is set once there was evidence of the mail. Later its absence means
	// nothing, because evidence expires.
	Confirmed bool
}
