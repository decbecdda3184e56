package redaction

import (
	"time"

	"github.com/criticizer/criticizer/review"
)

// A Change is a [review.Change] whose texts are of type Text.
type Change struct {
	Number      review.Changelist
	User        Text
	Description Text
	Jobs        []Text
	SubmittedAt time.Time
	Files       []File
	// Redactions counts what was masked, by class, sorted by class.
	Redactions []review.Redaction
}

// A File is a [review.File] whose texts are of type Text.
type File struct {
	Path   Text
	Action review.Action
	Type   Text
	// FromPath is empty unless p4 reported a source.
	FromPath Text
	Diff     Text
	// Skipped is [review.SkipNotDecodable] for a diff that this package cannot
	// read as text. The diff is left out.
	Skipped review.SkipReason
}

// Change redacts everything of c that may reach a model, as one payload: a
// secret found in one place is masked in all. Lines, diff prefixes and hunk
// headers stay where they are. An error has class [failure.RedactionBlocked].
func (p *Pipeline) Change(c review.Change) (Change, error) {
	out := Change{Number: c.Number, SubmittedAt: c.Time, Files: make([]File, len(c.Files))}
	pl := newPayload("changelist " + c.Number.String())
	pl.add(formText, c.User, &out.User)
	pl.add(formText, c.Description, &out.Description)
	out.Jobs = make([]Text, len(c.Jobs))
	for i, job := range c.Jobs {
		pl.add(formText, job, &out.Jobs[i])
	}
	for i, f := range c.Files {
		to := &out.Files[i]
		to.Action, to.Skipped = f.Action, f.Skipped
		pl.add(formText, f.DepotPath, &to.Path)
		pl.add(formText, f.Type, &to.Type)
		pl.add(formText, f.FromPath, &to.FromPath)
		if f.Diff != "" && !readable(f.Diff) {
			to.Skipped = review.SkipNotDecodable
			continue
		}
		pl.add(formDiff, f.Diff, &to.Diff)
	}
	if err := p.redact(pl); err != nil {
		return Change{}, err
	}
	out.Redactions = pl.counts()
	return out, nil
}
