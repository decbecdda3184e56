package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Fetcher serves contract.QueueFetch: the only stage that accesses Perforce, and the only one
// that writes raw artifacts.
type Fetcher struct {
	Changes    changes
	Submits    submits
	Recipients recipientStore
	Contents   contents
	Raw        rawArtifacts
	// Bots lists users and addresses of bots; * matches any text.
	Bots []string
}

// changes reads submitted changelists and shelves.
type changes interface {
	Read(ctx context.Context, cl review.Changelist, how review.ReadOptions) (review.Change, error)
}

// contents stores what was read of shelves, and which changes are skipped. Its method is that
// of store.DB.
type contents interface {
	RecordContent(ctx context.Context, cl review.Changelist, v review.Version, c review.Content) (shelf review.Changelist, err error)
}

// recipientStore stores the people around a change. It is idempotent.
type recipientStore interface {
	SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error
}

type rawArtifacts interface {
	artifactWriter
	// Pseudonym returns a name for a user that does not reveal the user.
	Pseudonym(user string) (string, error)
}

type artifactWriter interface {
	Put(ctx context.Context, of review.Owner, body []byte) (review.ArtifactRef, error)
}

type artifactReader interface {
	// Get returns failure.ArtifactExpired for an artifact past its TTL, and
	// failure.ArtifactForeign for one of another review.
	Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error)
}

// FetchResult holds the reference of the raw change.
type FetchResult struct {
	Raw   review.ArtifactRef `json:"raw"`
	Files int                `json:"files"`
	// SkippedBy is the rule by which the change is neither stored nor reviewed, or empty.
	SkippedBy review.SkipRule `json:"skipped_by,omitempty"`
	// Shelf is the changelist of the shelf that became this change, if that has a
	// review; else 0.
	Shelf review.Changelist `json:"shelf,omitempty"`
	// ByBot means that the author is a bot: people's changes go first.
	ByBot bool `json:"by_bot,omitempty"`
	// Author is a pseudonym of the author: reviews of several authors take turns.
	Author string `json:"author,omitempty"`
}

// replicaDelay is the least delay before a second attempt to read what a replica lacks. It
// doubles with each attempt up to [failure.MaxDelay]: a replica may need minutes to catch up.
const replicaDelay = 15 * time.Second

// Fetch reads the changelist and stores it encrypted. Addresses go to the database, not to
// Temporal's history. A replica that lags is asked again after [failure.Backoff] and the least
// delay of the attempt.
func (f *Fetcher) Fetch(ctx context.Context, p StageParams) (FetchResult, error) {
	req, attempt := p.Request, stageAttempt(ctx)
	change, err := f.Changes.Read(ctx, req.Changelist, review.ReadOptions{
		Shelved: req.Shelved, ShelvedAt: req.ShelvedAt, LastAttempt: attempt >= failure.AttemptBudget,
	})
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Class == failure.ReplicaBehind {
		e.RetryAfter = min(replicaDelay<<(attempt-1), failure.MaxDelay) + failure.Backoff(attempt, rand.Float64(), 0)
	}
	if err != nil {
		if len(change.Recipients) > 0 { // the author gets a notice if no attempt succeeds
			ctx, done := recordingContext(ctx)
			defer done()
			err = errors.Join(err, f.Recipients.SaveRecipients(ctx, req.Changelist, req.Version, change.Recipients))
		}
		return FetchResult{}, fmt.Errorf("fetch changelist %d: %w", req.Changelist, err)
	}
	damaged := 0
	for _, f := range change.Files {
		if f.Skipped == review.SkipDamaged || slices.Contains(f.Notes, review.NoteNoBase(review.SkipDamaged)) {
			damaged++
		}
	}
	countProblems(ctx, "damaged_file", damaged)
	shelf, err := f.Contents.RecordContent(ctx, req.Changelist, req.Version, change.Content())
	if err != nil || change.SkippedBy != "" {
		return FetchResult{SkippedBy: change.SkippedBy}, failed(req.Changelist, "record content", err)
	}
	result := FetchResult{Files: len(change.Files), Shelf: shelf, ByBot: f.isBot(change)}
	if result.Author, err = f.Raw.Pseudonym(change.User); err != nil {
		return FetchResult{}, failed(req.Changelist, "name the author", err)
	}
	if err := f.Recipients.SaveRecipients(ctx, req.Changelist, req.Version, KnownRecipients(change)); err != nil {
		return FetchResult{}, failed(req.Changelist, "save recipients", err)
	}
	change.Recipients, change.Unresolved = nil, nil
	body, err := review.Encode(change)
	if err != nil {
		return FetchResult{}, failed(req.Changelist, "encode change", err)
	}
	result.Raw, err = f.Raw.Put(ctx, req.Owner(), body)
	return result, failed(req.Changelist, "store change", err)
}

// isBot reports whether the author is a bot, by user or address.
func (f *Fetcher) isBot(change review.Change) bool {
	authors := []review.Recipient{{User: change.User}}
	for _, r := range change.Recipients {
		if r.Role == review.RoleAuthor {
			authors = append(authors, r)
		}
	}
	return slices.ContainsFunc(authors, func(a review.Recipient) bool { return matches(f.Bots, a, matchesPattern) })
}

// KnownRecipients lists the people around a change, and the users without a usable address.
func KnownRecipients(change review.Change) []review.Recipient {
	known := change.Recipients
	for _, user := range change.Unresolved {
		known = append(known, review.Recipient{User: user, Role: review.RoleUnresolved})
	}
	return known
}
