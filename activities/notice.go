package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// noticesAtOnce limits the notices of one run: an outage of hours ends in many dead letters.
const noticesAtOnce = 100

// sendNotices mails the authors of reviews that are dead-lettered before stage notify and stay
// open: a failure must not look like approval, and no other mail is sent to them.
func (r *reconciliation) sendNotices(ctx context.Context) error {
	for range noticesAtOnce {
		if r.Policy.NotReviewedAfter <= 0 {
			return nil
		}
		notice, ok, err := r.Outbox.BeginNotice(ctx, r.Policy.NotReviewedAfter)
		if err != nil || !ok {
			return err
		}
		if err := r.sendNotice(ctx, notice); err != nil {
			return fmt.Errorf("notify the author of changelist %d: %w", notice.Changelist, err)
		}
	}
	return nil
}

// sendNotice sends one notice, and marks it. A notice in doubt is looked up before it is sent
// again. Its key has a kind: no look-up of the digest finds it, and a later replay of the review
// still sends the digest.
func (r *reconciliation) sendNotice(ctx context.Context, notice review.Notice) error {
	known, err := r.Outbox.Recipients(ctx, notice.Changelist, notice.Version)
	known = slices.DeleteFunc(known, func(p review.Recipient) bool { return p.Role != review.RoleAuthor })
	if err != nil {
		return err
	}
	if len(known) == 0 {
		return r.Outbox.PostponeNotice(ctx, notice, "is not known, or has no usable address")
	}
	policy := r.Policy
	if policy.Bounced, err = r.Outbox.Bounced(ctx, addressesOf(known)); err != nil {
		return err
	}
	author := policy.Decide(known[:1], review.OutcomeNotReviewed)[0]
	if author.Why != "" {
		return r.Outbox.EndNotice(ctx, notice, "", author.Why)
	}
	key := review.DeliveryKey{Changelist: notice.Changelist, Recipient: strings.ToLower(author.Address), Version: notice.Version, Kind: review.NoticeNotReviewed}
	if notice.Again {
		evidence, err := r.Post.Lookup(ctx, key, "", notice.Begun)
		switch {
		case err != nil:
			return err
		case evidence.State == review.EvidenceAccepted:
			return r.Outbox.EndNotice(ctx, notice, evidence.NotificationID, "")
		case evidence.State != review.EvidenceAbsent:
			return r.Outbox.PostponeNotice(ctx, notice, "may have been notified: no evidence shows whether the mail was accepted")
		}
	}
	begun := time.Now() // before the row's time, so that Send's limit on its age holds
	if ok, err := r.Outbox.MarkNotice(ctx, notice, true); err != nil || !ok {
		return err
	}
	at := notice.FailedAt.UTC().Format(time.RFC3339)
	id, err := r.Post.Send(ctx, review.Report{
		Changelist: notice.Changelist, Version: notice.Version, Author: author.User, Outcome: review.OutcomeNotReviewed, ReviewedAt: at, To: review.RoleAuthor,
		Reason: fmt.Sprintf("the review stopped in stage %s (%s: %s). An operator has to act before it goes on; then you get the result. Until then, treat the change as not reviewed",
			notice.Stage, notice.Class, failure.Class(notice.Class).Describe().Meaning),
		Links: r.Links,
	}, key, begun)
	ctx, done := recordingContext(ctx)
	defer done()
	switch class := failure.ClassOf(err); {
	case err == nil:
		r.done.Notices++
		return r.Outbox.EndNotice(ctx, notice, id, "")
	case class == failure.RecipientRejected:
		return r.Outbox.EndNotice(ctx, notice, "", "has an address that the mail server refuses")
	case class != failure.Unknown && class != failure.DeliveryAmbiguous:
		_, unmarked := r.Outbox.MarkNotice(ctx, notice, false)
		err = errors.Join(err, unmarked)
	}
	return err
}
