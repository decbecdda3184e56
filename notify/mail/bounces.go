package mail

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/textproto"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	messagemail "github.com/emersion/go-message/mail"

	"github.com/criticizer/criticizer/review"
)

// bounces is the mailbox of the sender, with the reports on messages that were
// accepted and then could not be delivered (RFC 3464).
type bounces struct{ Mailbox }

func (bounces) name() string { return "bounce" }

// maxBounce bounds how much of a bounce is read, in bytes. Servers return the header
// of a message, or the whole message, after the report.
const maxBounce = 256 << 10

// find implements source. copies is always 0. The bounce of an earlier attempt
// stays in the mailbox.
func (b bounces) find(ctx context.Context, ref messageRef) (state review.EvidenceState, copies int, err error) {
	state = review.EvidenceUnknown
	err = b.open(ctx, func(box openMailbox) error {
		found, err := box.search(ref, ref.anyToken(func(token string) imap.SearchCriteria {
			return imap.SearchCriteria{Text: []string{token}}
		}))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			state = review.EvidenceAbsent
			return nil
		}
		section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxBounce}}
		messages, err := box.fetch(found, imap.FetchOptions{InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}})
		if err != nil {
			return err
		}
		state = review.EvidenceAbsent
		for _, m := range messages {
			if state != review.EvidenceRejected && ref.rejectedBy(m.FindBodySection(section)) {
				state = ref.rejectedAt(m.InternalDate)
			}
		}
		return nil
	})
	return state, 0, err
}

// rejectedBy reports whether raw is a report that the message could not be
// delivered to its recipient. A report of a delay is not, and neither is one
// about another recipient, such as the journal, nor a message with a sender in its
// envelope: reports have none (RFC 3464).
func (ref messageRef) rejectedBy(raw []byte) bool {
	var failed, ours bool
	header, err := eachPart(raw, func(contentType string, body []byte) {
		switch contentType {
		case "message/delivery-status", "message/global-delivery-status":
			failed = failed || ref.failedIn(body)
		case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers":
			identified, addressed := ref.matches(body)
			ours = ours || identified && addressed
		}
	})
	return err == nil && emptySender(header.Get("Return-Path")) && failed && ours
}

// emptySender reports whether a Return-Path stands for an empty sender in the envelope. Postfix
// hands MAILER-DAEMON to programs that store mail (pipe(8), null_sender), Sendmail adds its
// host, and qmail writes #@[].
func emptySender(path string) bool {
	local, _, _ := strings.Cut(strings.Trim(path, " \t<>"), "@")
	return slices.Contains([]string{"", "mailer-daemon", "postmaster", "#"}, strings.ToLower(local))
}

// eachPart calls visit with each part of a message, whose rest may be cut off. The content type
// is in lower case and without parameters.
func eachPart(raw []byte, visit func(contentType string, body []byte)) (messagemail.Header, error) {
	report, err := messagemail.CreateReader(bytes.NewReader(raw))
	if err != nil && !message.IsUnknownCharset(err) {
		return messagemail.Header{}, err
	}
	for {
		part, err := report.NextPart()
		if err != nil && !message.IsUnknownCharset(err) {
			return report.Header, nil
		}
		contentType, _, _ := strings.Cut(part.Header.Get("Content-Type"), ";")
		body, _ := io.ReadAll(part.Body) // of a part that is cut off, the rest counts
		visit(strings.ToLower(strings.TrimSpace(contentType)), body)
	}
}

// failedIn reports whether a group of a delivery status says that delivery to the
// recipient failed.
func (ref messageRef) failedIn(status []byte) bool {
	groups := textproto.NewReader(bufio.NewReader(bytes.NewReader(status)))
	for {
		group, err := groups.ReadMIMEHeader()
		if strings.EqualFold(group.Get("Action"), "failed") &&
			(ref.isTo(group.Get("Original-Recipient")) || ref.isTo(group.Get("Final-Recipient"))) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// isTo compares the recipient with an address in the form of reports:
// rfc822; ann@example.com.
func (ref messageRef) isTo(field string) bool {
	_, address, _ := strings.Cut(field, ";")
	return strings.EqualFold(strings.Trim(address, " \t<>"), ref.recipient)
}
