package review

// A DueDelivery is an outbox row that reconciliation looks at, with what it
// needs to know of the row's review (review-notification 8.2, 8.3).
type DueDelivery struct {
	Delivery
	JobState JobState
	// Report is the report of a review that succeeded; empty of any other.
	Report ArtifactRef
	// Confirmed is set once the provider had evidence of the mail. From then on
	// its absence says nothing: evidence is not kept for ever.
	Confirmed bool
}
