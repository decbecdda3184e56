package activitiestest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// SetChange sets the change that is fetched.
func (w *Fakes) SetChange(c review.Change) { w.set(func() { w.change = c }) }

// Read implements the fetch of a changelist, "Fetch" in the calls, or of a shelf,
// "FetchShelf".
func (w *Fakes) Read(_ context.Context, cl review.Changelist, how review.ReadOptions) (c review.Change, err error) {
	name := "Fetch"
	if how.Shelved {
		name = "FetchShelf"
	}
	err = w.call(name, func() { c = w.change })
	c.Number, c.Shelved = cl, how.Shelved
	return c, err
}

// ResetOf returns a reset by an operator.
func (w *Fakes) ResetOf(context.Context, string, string) (identity, reason string, err error) {
	return "operator", "tested", nil
}

// CanceledBy returns a cancellation by an operator.
func (w *Fakes) CanceledBy(context.Context, string, string) (string, error) {
	return "by operator: tested", nil
}

// SetDraft sets the result of Review.
func (w *Fakes) SetDraft(d review.Draft) { w.set(func() { w.draft = d }) }

// Review returns the draft and uses its tokens.
func (w *Fakes) Review(ctx context.Context, _ redaction.Change, o review.Options) (draft review.Draft, err error) {
	err = w.call("Review", func() { draft = w.draft })
	if err != nil || draft.Usage.Tokens() == 0 {
		return draft, err
	}
	grant, err := o.Budget.Reserve(ctx, draft.Usage.Tokens())
	if err != nil {
		return draft, err
	}
	o.Progress(1, 1)
	return draft, o.Budget.Settle(ctx, grant, draft.Usage)
}

// Copies is how many messages the recipient has.
func (w *Fakes) Copies(address string) int {
	return get(w, func() (n int) {
		for _, sent := range w.mailed {
			if sent[0] == address {
				n += len(sent)
			}
		}
		return n
	})
}

// Mails returns the accepted reports, in order.
func (w *Fakes) Mails() []review.Report {
	return get(w, func() []review.Report { return slices.Clone(w.mails) })
}

// Lose deletes the mail server's record of the recipient's mails.
func (w *Fakes) Lose(address string) {
	w.set(func() {
		maps.DeleteFunc(w.mailed, func(_ string, sent []string) bool { return sent[0] == address })
	})
}

// SetEvidence sets the answer to look-ups of messages that were not accepted.
func (w *Fakes) SetEvidence(e review.Evidence) { w.set(func() { w.evidence = e }) }

// AfterSend is called after a message is accepted and before Send returns; it may panic.
func (w *Fakes) AfterSend(f func()) { w.afterSend = f }

// Send implements the mail provider. A fault of "Send" means that the message was not
// accepted; one of "Send reply" that it was accepted and the caller gets an error.
func (w *Fakes) Send(ctx context.Context, report review.Report, key review.DeliveryKey, begun time.Time) (id string, err error) {
	failed := w.call("Send", func() {
		switch clean := report.Outcome == review.OutcomeClean; {
		case report.Changelist != key.Changelist, report.Version != key.Version,
			(clean || report.Outcome == review.OutcomeFindings) && clean != (len(report.Findings) == 0):
			err = failure.Errorf(failure.InvariantViolated, "send mail: the report is inconsistent or does not match the key")
		case key.Channel() == review.ChannelMail && !strings.Contains(key.Recipient, "@"):
			err = failure.Errorf(failure.RecipientRejected, "send mail: the address is not valid")
		case ctx.Err() != nil, time.Since(begun) > sendLimit:
			err = failure.Errorf(failure.NetworkTimeout, "send mail: nothing was sent in time")
		default:
			id = messageID(key)
			w.mailed[id] = append(w.mailed[id], key.Recipient)
			w.mails = append(w.mails, report)
		}
	})
	if err = cmp.Or(failed, err); err != nil {
		return "", err
	}
	if w.afterSend != nil {
		w.afterSend()
	}
	if err = w.call("Send reply", nil); err != nil {
		id = ""
	}
	return id, err
}

// sendLimit is the age from which an attempt sends nothing, as with a mail server.
const sendLimit = 2 * time.Minute

// messageID contains no address.
func messageID(key review.DeliveryKey) string {
	return fmt.Sprintf("message %.16x", sha256.Sum256([]byte(strings.ToLower(fmt.Sprint(key)))))
}

// Lookup returns the evidence of an accepted message, or the evidence that
// [Fakes.SetEvidence] set. The search has to begin at the last attempt.
func (w *Fakes) Lookup(_ context.Context, key review.DeliveryKey, _ string, since time.Time) (e review.Evidence, err error) {
	e.State = review.EvidenceUnknown
	err = w.call("Lookup", func() {
		if at, ok := w.begun[key]; ok && at.Sub(since).Abs() > time.Minute {
			panic(fmt.Sprintf("a message is looked up since %s, its last attempt began at %s", since, at))
		}
		e = w.evidence
		if id := messageID(key); len(w.mailed[id]) > 0 {
			e = review.Evidence{State: review.EvidenceAccepted, NotificationID: id, Source: "fake"}
		}
	})
	return e, err
}
