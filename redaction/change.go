package redaction

import (
	"time"

	"github.com/criticizer/criticizer/review"
)

// A Change is a [review.Change] whose every text is a Text.
type Change struct {
	Number      review.Changelist
	User        Text
	Description Text
	SubmittedAt time.Time
	Files       []File
	// Redactions counts what was masked, by class, sorted by class.
	Redactions []review.Redaction
}

// A File is a [review.File] whose every text is a Text.
type File struct {
	Path    Text
	Action  review.Action
	Type    string
	Diff    Text
	Skipped review.SkipReason
}
