// Package mail renders the digest of a review, sends it, and looks up whether
// it was sent.
//
// SMTP has no idempotency token: if the connection breaks while the server
// confirms a message, the client cannot know whether the server accepted it.
// Every attempt at one delivery therefore sends the same bytes under the same
// Message-ID, and only the server's own reply counts as sent. A message in
// doubt is [failure.DeliveryAmbiguous] and is resolved by [Provider.Lookup], never
// by sending it again (notification 6.4, 8.2).
//
// Read mail.go, then render.go with digest.go, which fills the templates, message.go, which has
// the subject and the header, and smtp.go, which sends, with classify.go for its errors. A
// look-up asks the records of the server that evidence.go describes: journal.go, bounces.go,
// postfixlog.go, and inbox.go for the embedded inbox of the demo and the tests.
package mail

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

const (
	// inboxSettle is the settle window of the embedded inbox.
	inboxSettle = 10 * time.Second
	// recordTime is when nearly all evidence has been recorded: a look-up sooner after the
	// attempt waits for it.
	recordTime = 3 * time.Second
	// secondQuery is the time between the two queries that absence requires: a server may
	// answer the first one from an index that is behind.
	secondQuery = time.Second
	// queueTime is how long a server that cannot reach a mailbox may keep a message
	// in its queue (Postfix retries after at most 67 minutes).
	queueTime = 70 * time.Minute
	// sourcePause is the retry delay while a source is down, so that a short outage
	// does not use the attempts of the stage.
	sourcePause = 30 * time.Second
)

// A Provider renders digests, sends them through a mail server, and looks up in its
// records whether it accepted a message.
type Provider struct {
	*Server
	settle time.Duration
	// bounces show rejection only, so they never prove absence. May be nil.
	bounces source
	// witnesses show whether a message was accepted.
	witnesses []source
	// showsQueue is set if a witness shows a message that is in the server's queue.
	showsQueue bool
}

// NewProvider adds evidence to server. It rejects a log that cannot be read. cfg was
// checked.
func NewProvider(server *Server, cfg EvidenceConfig) (*Provider, error) {
	p := &Provider{settle: cfg.Settle, showsQueue: cfg.MTALog != "" || cfg.Journal.Server.IsInbox()}
	if cfg.Bounces.Server != "" {
		p.bounces = bounces{cfg.Bounces}
	}
	if cfg.MTALog != "" {
		log, err := os.Open(cfg.MTALog)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "mail.mta_log: %w: set a log that the account of the worker can read", err)
		}
		_ = log.Close()
		p.witnesses = append(p.witnesses, postfixLog{cfg.MTALog})
	}
	switch {
	case cfg.Journal.Server == "":
	case cfg.Journal.Server.IsInbox():
		p.witnesses = append(p.witnesses, inboxRecords{"http://" + cfg.Journal.Server.endpoint().address()})
		p.settle = inboxSettle
	default:
		p.witnesses = append(p.witnesses, journal{cfg.Journal})
	}
	server.sendLimit = min(server.sendLimit, p.settle/2) // an attempt ends before a look-up trusts absence
	p.Server = server
	if len(p.witnesses) == 0 {
		p.lg.Warn("no evidence for mail: a message in doubt is held; configure mail.journal or mail.mta_log")
	}
	return p, nil
}

// Send renders report for the recipient of k, sends it once, in an attempt that started at
// begun, and returns the ID by which Lookup finds it. Its errors come from [Render] and
// the mail server; none contains an address.
//
// Some servers reject a message after they have queued it. A rejection after the whole
// message was read therefore does not count at once: the message is looked up. Unless it was
// accepted, the rejection is wrapped in an error of class DeliveryAmbiguous, and counts if the
// look-up after the settle window finds nothing.
func (p *Provider) Send(ctx context.Context, report review.Report, k review.DeliveryKey, begun time.Time) (notificationID string, err error) {
	m, err := Render(report, k, p.cfg.Keys.Token(k), p.cfg)
	if err != nil {
		return "", err
	}
	m.Begun = begun
	at, err := p.send(ctx, m)
	if err == nil {
		p.lg.InfoContext(ctx, "mail accepted",
			"changelist", int64(k.Changelist), "review_version", int(k.Version), "notification_id", m.ID, "bytes", len(m.Text)+len(m.HTML))
		return m.ID, nil
	}
	rejection, ok := errors.AsType[*failure.Error](err)
	if at != stepDot || !ok || rejection.Class == failure.DeliveryAmbiguous || len(p.witnesses) == 0 {
		return "", err
	}
	if e, lookupErr := p.Lookup(ctx, k, "", begun); lookupErr == nil && e.State == review.EvidenceAccepted {
		p.lg.WarnContext(ctx, "mail rejected and accepted", "notification_id", m.ID, "error", err)
		return m.ID, nil
	}
	doubt := failure.Errorf(failure.DeliveryAmbiguous, "%w; the server has read the whole message, so it is looked up before that counts", err)
	doubt.Upstream, doubt.RetryAfter = rejection.Upstream, max(0, remaining(begun, p.settle))
	return "", doubt
}

// Lookup returns evidence whether the message of k was accepted (notification 8.2). since is
// when its last attempt started. The rules:
//
//   - A bounce outranks acceptance.
//   - One witness is enough for acceptance.
//   - Absence requires all witnesses, two queries, and the end of the settle
//     window.
//   - A journal does not show messages in the server's queue. If it is the only
//     witness, absence requires the time that a message may stay there.
//
// If the answer is unknown and the attempt started less than recordTime ago, Lookup waits for
// the records and queries once more: the reply to the dot was lost, and waiting for the end of
// the settle window would delay a message that was accepted.
func (p *Provider) Lookup(ctx context.Context, k review.DeliveryKey, _ string, since time.Time) (review.Evidence, error) {
	ref := p.cfg.messageRef(k, since)
	e, err := p.query(ctx, ref)
	var wait time.Duration
	switch {
	case e.Observed:
		wait = secondQuery
	case e.State == review.EvidenceUnknown && len(p.witnesses) > 0:
		wait = min(recordTime, recordTime-time.Since(since))
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
func (p *Provider) query(ctx context.Context, ref messageRef) (review.Evidence, error) {
	e := review.Evidence{State: review.EvidenceUnknown, Source: "none"}
	var problems []error
	if p.bounces != nil {
		found, err := p.bounces.find(ctx, ref)
		if found.state == review.EvidenceRejected || found.state == review.EvidenceUnknown && err == nil {
			return found.rejected(p.bounces.name()), nil
		}
		problems = append(problems, err)
	}
	blind := len(p.witnesses) == 0 || !ref.covered // a source could not have seen it
	for _, w := range p.witnesses {
		found, err := w.find(ctx, ref)
		switch found.state {
		case review.EvidenceRejected:
			return found.rejected(w.name()), nil
		case review.EvidenceAccepted:
			if found.copies > 1 {
				p.lg.WarnContext(ctx, "mail was accepted more than once", "notification_id", ref.id(), "copies", found.copies)
			}
			e = review.Evidence{State: found.state, Source: w.name(), NotificationID: ref.id()}
		case review.EvidenceAbsent:
		default:
			blind = true
		}
		problems = append(problems, err)
	}
	err := errors.Join(problems...)
	settled := ref.since.Add(p.settle)
	switch {
	case e.State == review.EvidenceAccepted:
	case err != nil:
		slow := failure.New(failure.ClassOf(err), err)
		slow.RetryAfter = sourcePause
		return e, slow
	case len(p.witnesses) > 0 && time.Now().Before(settled):
		e.AskAgain = settled
	case !blind && (p.showsQueue || time.Since(ref.since) > queueTime):
		e.State, e.Observed = review.EvidenceAbsent, true
	}
	return e, nil
}
