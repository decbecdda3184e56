package mail

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

const (
	// recordTime is when nearly all evidence has been recorded: a look-up sooner
	// after the attempt waits for it.
	recordTime = 3 * time.Second
	// secondQuery is the time between the two queries that absence requires.
	secondQuery = time.Second
	// queueTime is how long a server that cannot reach a mailbox may keep a message
	// in its queue (Postfix retries after at most 67 minutes).
	queueTime = 70 * time.Minute
	// sourcePause is the retry delay while a source is down, so that a short outage
	// does not use the attempts of the stage.
	sourcePause = 30 * time.Second
)

// Lookup implements [Provider]. The rules:
//
//   - A bounce outranks acceptance.
//   - One witness is enough for acceptance.
//   - Absence requires all witnesses, two queries, and the end of the settle
//     window.
//   - A journal does not show messages in the server's queue. If it is the only
//     witness, absence requires the time that a message may stay there.
func (p *EvidencedProvider) Lookup(ctx context.Context, k review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	return p.lookUp(ctx, p.SMTPProvider.cfg.messageRef(k, since))
}

// lookUp queries the sources. It queries them once more if evidence may arrive
// within seconds, or if a server may have answered from an index that is behind.
func (p *EvidencedProvider) lookUp(ctx context.Context, ref messageRef) (review.Evidence, error) {
	e, err := p.query(ctx, ref)
	var wait time.Duration
	switch {
	case e.State == review.EvidenceUnknown && len(p.witnesses) > 0:
		wait = min(recordTime-time.Since(ref.since), recordTime)
	case e.Observed:
		wait = secondQuery
	}
	if wait <= 0 {
		return e, err
	}
	select {
	case <-ctx.Done():
		return review.Evidence{State: review.EvidenceUnknown}, failure.Errorf(failure.NetworkTimeout, "look up mail: %w", ctx.Err())
	case <-time.After(wait):
		return p.query(ctx, ref)
	}
}

// query asks every source once and weighs the answers.
func (p *EvidencedProvider) query(ctx context.Context, ref messageRef) (review.Evidence, error) {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	var problems []error
	if p.bounces != nil {
		state, _, err := p.bounces.find(ctx, ref)
		if state == review.EvidenceRejected || state == review.EvidenceUnknown && err == nil {
			return review.Evidence{State: state, Source: p.bounces.name()}, nil
		}
		problems = append(problems, err)
	}
	blind := len(p.witnesses) == 0 || !ref.covered
	for _, w := range p.witnesses {
		state, copies, err := w.find(ctx, ref)
		switch state {
		case review.EvidenceRejected:
			return review.Evidence{State: state, Source: w.name()}, nil
		case review.EvidenceAccepted:
			warnOfCopies(ctx, p.lg, ref.id(), copies)
			e = review.Evidence{State: state, Source: w.name(), NotificationID: ref.id()}
		case review.EvidenceAbsent:
		default:
			blind = true
		}
		problems = append(problems, err)
	}
	if e.State == review.EvidenceAccepted {
		return e, nil
	}
	if err := errors.Join(problems...); err != nil {
		slow := failure.New(failure.ClassOf(err), err)
		slow.RetryAfter = sourcePause
		return e, slow
	}
	return p.withoutRecord(ref, blind), nil
}

// withoutRecord returns the evidence if no source has seen the message. blind
// means that at least one source could not have seen it.
func (p *EvidencedProvider) withoutRecord(ref messageRef, blind bool) review.Evidence {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	settled := ref.since.Add(p.cfg.Settle)
	final := len(p.witnesses) == 0 && !p.cfg.ResendInDoubt // waiting changes nothing
	switch {
	case !final && time.Now().Before(settled):
		e.AskAgain = settled
	case !blind && (p.cfg.MTALog != "" || time.Since(ref.since) > queueTime):
		e.State, e.Observed = review.EvidenceAbsent, true
	case p.cfg.ResendInDoubt:
		e.State = review.EvidenceAbsent
	}
	return e
}

func warnOfCopies(ctx context.Context, lg *slog.Logger, id string, copies int) {
	if copies > 1 {
		lg.WarnContext(ctx, "mail was accepted more than once", "notification_id", id, "copies", copies)
	}
}
