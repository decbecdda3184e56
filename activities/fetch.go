package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/review"
)

// Fetching serves [QueueFetch]: the only stage that talks to Perforce, and the
// only one that writes raw artifacts.
type Fetching struct {
	Changes    changes
	Submits    submits
	Recipients recipientBook
	Contents   contents // nil if no shelf is ever reviewed
	Raw        artifactWriter
	Owners     owners   // nil if nobody owns anything
	InFlight   inFlight // nil if as many reviews may be in flight as there are
	Slots      slotNeeds
	// Bots are users and addresses that are no people; * stands for anything.
	Bots []string
}

// owners knows who is to be told of changes to which files.
type owners interface {
	Of(files []review.File) []review.Recipient
}

// changes reads submitted changelists and shelves.
type changes interface {
	Fetch(ctx context.Context, cl review.Changelist) (review.Change, error)
	FetchShelf(ctx context.Context, cl review.Changelist) (review.Change, error)
}

// contents remembers what was read of shelves.
type contents interface {
	// NoteContent returns the changelist of the shelf that the change was, 0 if no
	// other version of the review was of one. Noting twice is noting once.
	NoteContent(ctx context.Context, cl review.Changelist, v review.Version, c review.Content) (shelf review.Changelist, err error)
}

// recipientBook keeps who may be told. Saving twice is saving once.
type recipientBook interface {
	SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error
}

type artifactWriter interface {
	Put(ctx context.Context, body []byte) (review.ArtifactRef, error)
}

type artifactReader interface {
	// Get returns failure.ArtifactExpired for an artifact past its TTL.
	Get(ctx context.Context, ref review.ArtifactRef) ([]byte, error)
}

// FetchResult points at the raw change.
type FetchResult struct {
	Raw   review.ArtifactRef `json:"raw"`
	Files int                `json:"files"`
	// SkippedBy says why there is nothing to review, empty if there is something.
	// Nothing was stored then.
	SkippedBy review.SkipRule `json:"skipped_by,omitempty"`
	// Shelf is the changelist of the shelf that the change was, if there is a review
	// of that, else 0.
	Shelf review.Changelist `json:"shelf,omitempty"`
	// ByBot is set if the author is no person: people's changes go first.
	ByBot bool `json:"by_bot,omitempty"`
	// NeedsSlots is set if the review has to wait until [Bookkeeping.Admit] admits it.
	NeedsSlots bool `json:"needs_slots,omitempty"`
}

// Fetch reads the changelist and stores it encrypted. Addresses go to the
// outbox's schema, not into the history.
func (f *Fetching) Fetch(ctx context.Context, p StageParams) (FetchResult, error) {
	change, err := f.read(ctx, p.Request)
	if err != nil {
		return FetchResult{}, fmt.Errorf("fetch changelist %d: %w", p.Request.Changelist, err)
	}
	if change.SkippedBy != "" {
		return FetchResult{SkippedBy: change.SkippedBy}, nil
	}
	result, err := f.note(ctx, p.Request, change)
	if err != nil {
		return FetchResult{}, err
	}
	change.Recipients, change.Unresolved = nil, nil
	body, err := json.Marshal(change)
	if err != nil {
		return FetchResult{}, fmt.Errorf("encode changelist %d: %w", p.Request.Changelist, err)
	}
	if result.Raw, err = f.Raw.Put(ctx, body); err != nil {
		return FetchResult{}, fmt.Errorf("store changelist %d: %w", p.Request.Changelist, err)
	}
	return result, nil
}

// note keeps what other stages are to know of the change besides its content.
func (f *Fetching) note(ctx context.Context, req review.Request, change review.Change) (FetchResult, error) {
	result := FetchResult{Files: len(change.Files), ByBot: f.isBot(change)}
	var err error
	if result.Shelf, err = f.noteContent(ctx, req, change); err != nil {
		return result, fmt.Errorf("note content of changelist %d: %w", req.Changelist, err)
	}
	if result.NeedsSlots, err = f.noteSlots(ctx, req, change, result.ByBot); err != nil {
		return result, fmt.Errorf("note slots for changelist %d: %w", req.Changelist, err)
	}
	if err := f.Recipients.SaveRecipients(ctx, req.Changelist, req.Version, Around(change, f.Owners)); err != nil {
		return result, fmt.Errorf("save recipients of changelist %d: %w", req.Changelist, err)
	}
	return result, nil
}

// isBot reports whether the author is one, by name or by address.
func (f *Fetching) isBot(change review.Change) bool {
	authors := []review.Recipient{{User: change.User}}
	for _, r := range change.Recipients {
		if r.Role == review.RoleAuthor {
			authors = append(authors, r)
		}
	}
	return slices.ContainsFunc(authors, func(a review.Recipient) bool { return matches(f.Bots, a, matchesPattern) })
}

func (f *Fetching) read(ctx context.Context, req review.Request) (review.Change, error) {
	if req.Shelved {
		return f.Changes.FetchShelf(ctx, req.Changelist)
	}
	return f.Changes.Fetch(ctx, req.Changelist)
}

func (f *Fetching) noteContent(ctx context.Context, req review.Request, change review.Change) (shelf review.Changelist, err error) {
	if f.Contents == nil {
		return 0, nil
	}
	return f.Contents.NoteContent(ctx, req.Changelist, req.Version, change.Content())
}

// Around lists everybody around a change: author, subscribers, owners, and by name
// those who have no usable address. Of a change that may not be read only the
// author is told: the others might not be meant to know of it. Nor are owners told of
// a shelf. owned may be nil.
func Around(change review.Change, owned owners) []review.Recipient {
	known := change.Recipients
	if owned != nil && !change.Denied() && !change.Shelved {
		known = append(known, owned.Of(change.Files)...)
	}
	for _, user := range change.Unresolved {
		known = append(known, review.Recipient{User: user, Role: review.RoleUnresolved})
	}
	return known
}
