package mail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// find implements source. The bounce of an earlier attempt stays in the mailbox.
func (b bounces) find(ctx context.Context, ref messageRef) (found finding, err error) {
	found.state = review.EvidenceUnknown
	err = b.open(ctx, func(box openMailbox) error {
		uids, err := box.search(ref, ref.anyToken(func(token string) imap.SearchCriteria {
			return imap.SearchCriteria{Text: []string{token}}
		}))
		if err != nil {
			return err
		}
		section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxBounce}}
		messages, err := box.fetch(uids, section)
		if err != nil {
			return err
		}
		found.state = review.EvidenceAbsent
		for _, m := range messages {
			if rejection, ok := ref.rejection(m.FindBodySection(section)); ok && found.state != review.EvidenceRejected {
				found.state, found.rejection = ref.rejectedAt(m.InternalDate), rejection
			}
		}
		return nil
	})
	return found, err
}

// rejection returns the server's reply from a report that the message could not be delivered to
// its recipient. A report of a delay is not one, and neither is one about another recipient, such
// as the journal, nor a message with a sender in its envelope: reports have none (RFC 3464).
func (ref messageRef) rejection(raw []byte) (r reply, ok bool) {
	var failed, ours bool
	header, err := eachPart(raw, func(contentType string, body []byte) {
		switch contentType {
		case "message/delivery-status", "message/global-delivery-status":
			if !failed {
				r, failed = ref.failedIn(body)
			}
		case "message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers":
			identified, addressed := ref.matches(body)
			ours = ours || identified && addressed
		}
	})
	return r, err == nil && emptySender(header.Get("Return-Path")) && failed && ours
}

// emptySender reports whether a Return-Path stands for an empty sender in the envelope. Postfix
// hands MAILER-DAEMON to programs that store mail (pipe(8), null_sender), Sendmail adds its
// host, AOL writes null, and qmail #@[].
func emptySender(path string) bool {
	local, _, _ := strings.Cut(strings.Trim(path, " \t<>"), "@")
	return slices.Contains([]string{"", "mailer-daemon", "postmaster", "null", "#"}, strings.ToLower(local))
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

// failedIn returns the reply of a group of a delivery status that says that delivery to the
// recipient failed. Fields may end in a comment (RFC 3464 2.1.1), and a line that is not a field
// ends a group.
func (ref messageRef) failedIn(status []byte) (r reply, ok bool) {
	groups := textproto.NewReader(bufio.NewReader(bytes.NewReader(status)))
	for {
		group, err := groups.ReadMIMEHeader()
		action, _, _ := strings.Cut(group.Get("Action"), " ")
		if strings.EqualFold(action, "failed") &&
			(ref.isTo(group.Get("Original-Recipient")) || ref.isTo(group.Get("Final-Recipient"))) {
			return statusReply(group.Get("Status"), group.Get("Diagnostic-Code")), true
		}
		if errors.Is(err, io.EOF) {
			return reply{}, false
		}
	}
}

var diagnosticPattern = regexp.MustCompile(`\b([45]\d\d)[ -]+(.*)`)

// statusReply returns the reply to RCPT that a delivery status quotes, or the one that its
// Status stands for.
func statusReply(status, diagnostic string) reply {
	code, text := "550", diagnostic
	if found := diagnosticPattern.FindStringSubmatch(diagnostic); found != nil {
		code, text = found[1], found[2]
	} else if strings.HasPrefix(status, "4") {
		code = "450"
	}
	if status = strings.TrimSpace(status); !enhancedPattern.MatchString(text) && !strings.HasSuffix(status, ".0.0") {
		text = status + " " + text
	}
	number, _ := strconv.Atoi(code)
	return newReply(stepRcpt, number, text)
}

// isTo compares the recipient with an address in the form of reports:
// rfc822; ann@example.com. Some leave the type out (mautic/mautic#2480), or write the address as
// xtext (RFC 3461), with +2B for a plus.
func (ref messageRef) isTo(field string) bool {
	address := field[strings.Index(field, ";")+1:]
	address, _, _ = strings.Cut(strings.TrimSpace(address), " ")
	address = strings.Trim(address, " \t<>")
	plain, err := url.PathUnescape(strings.ReplaceAll(strings.ReplaceAll(address, "%", "%25"), "+", "%"))
	return strings.EqualFold(address, ref.recipient) || err == nil && strings.EqualFold(plain, ref.recipient)
}
