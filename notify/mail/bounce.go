package mail

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/textproto"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	messagemail "github.com/emersion/go-message/mail"

	"github.com/criticizer/criticizer/review"
)

// bounces is the mailbox of the sender. What comes back to it was accepted first,
// and then could not be delivered (RFC 3464).
type bounces struct{ Mailbox }

func (bounces) name() string { return "bounce" }

// maxBounce is how much of a bounce is read. Servers return the header of a
// message, or the whole of it after the report.
const maxBounce = 1 << 20

// find implements source; copies is always 0. A bounce of an earlier attempt does
// not go away.
func (b bounces) find(ctx context.Context, t trace) (state review.EvidenceState, copies int, err error) {
	state = review.EvidenceUnknown
	err = b.visit(ctx, func(v visit) error {
		found, err := v.matching(t, imap.SearchCriteria{Text: []string{t.token}})
		if err != nil {
			return err
		}
		state = review.EvidenceAbsent
		if len(found) == 0 {
			return nil
		}
		section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxBounce}}
		messages, err := v.fetch(found, imap.FetchOptions{InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}})
		for _, m := range messages {
			if state != review.EvidenceRejected && t.rejectedBy(m.FindBodySection(section)) {
				state = t.rejectedAt(m.InternalDate)
			}
		}
		return err
	})
	return state, 0, err
}

// rejectedBy reports whether raw is a report that the message could not be
// delivered to its recipient. A report that it is late is none, nor is one
// about another recipient, such as the journal.
func (t trace) rejectedBy(raw []byte) bool {
	report, err := messagemail.CreateReader(bytes.NewReader(raw))
	if err != nil && !message.IsUnknownCharset(err) {
		return false
	}
	var failed, ours bool
	for {
		part, err := report.NextPart()
		if err != nil && !message.IsUnknownCharset(err) {
			return failed && ours
		}
		kind, body := partOf(part)
		switch kind {
		case "message/delivery-status", "message/global-delivery-status":
			failed = failed || t.failedIn(body)
		case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers":
			ours = ours || t.marks(body)
		}
	}
}

func partOf(p *messagemail.Part) (kind string, body []byte) {
	contentType, _, _ := strings.Cut(p.Header.Get("Content-Type"), ";")
	// A part that is cut off is judged by what there is of it.
	body, _ = io.ReadAll(p.Body)
	return strings.ToLower(strings.TrimSpace(contentType)), body
}

// failedIn reports whether a group of a delivery status says that the recipient
// is not to be reached.
func (t trace) failedIn(status []byte) bool {
	groups := textproto.NewReader(bufio.NewReader(bytes.NewReader(status)))
	for {
		group, err := groups.ReadMIMEHeader()
		if strings.EqualFold(group.Get("Action"), "failed") &&
			(t.isTo(group.Get("Original-Recipient")) || t.isTo(group.Get("Final-Recipient"))) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// isTo compares an address as reports have it: rfc822; ann@example.com.
func (t trace) isTo(field string) bool {
	_, address, _ := strings.Cut(field, ";")
	return strings.EqualFold(strings.Trim(address, " \t<>"), t.recipient)
}
