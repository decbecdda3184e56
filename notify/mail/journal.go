package mail

import (
	"bufio"
	"bytes"
	"context"
	"net/mail"
	"net/textproto"
	"strings"

	"github.com/emersion/go-imap/v2"

	"github.com/criticizer/criticizer/review"
)

// A journal is a mailbox with a copy of every message the server accepted. It
// proves acceptance, not delivery. It does not contain messages that are still
// in the server's queue.
type journal struct{ Mailbox }

func (journal) name() string { return "journal" }

// find implements source. A journal without any message of ours may be the wrong
// mailbox, so it proves no absence.
func (j journal) find(ctx context.Context, ref messageRef) (state review.EvidenceState, copies int, err error) {
	state = review.EvidenceUnknown
	err = j.open(ctx, func(b openMailbox) error {
		var others int
		if copies, others, err = b.copies(ref); err != nil || copies+others > 0 {
			return err
		}
		sent := or(hasField(headerKey, ""), hasField(headerID, idPrefix))
		sent.Header = append(sent.Header, imap.SearchCriteriaHeaderField{Key: "From", Value: ref.sender})
		ours, err := b.search(ref, sent)
		if len(ours) > 0 {
			state = review.EvidenceAbsent
		}
		return err
	})
	if err == nil && copies > 0 {
		state = review.EvidenceAccepted
	}
	return state, copies, err
}

// hasField matches a header field that contains the text given.
func hasField(name, text string) imap.SearchCriteria {
	return imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: name, Value: text}}}
}

// or matches what a or b matches.
func or(a, b imap.SearchCriteria) imap.SearchCriteria {
	return imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{a, b}}}
}

// anyToken matches what match returns for one of the tokens.
func (ref messageRef) anyToken(match func(token string) imap.SearchCriteria) (all imap.SearchCriteria) {
	for i, token := range ref.tokens {
		if found := match(token); i == 0 {
			all = found
		} else {
			all = or(all, found)
		}
	}
	return all
}

// copies counts the messages with a token of ref. others is the number of them with
// another sender or recipient. An IMAP search matches parts of a field, so copies
// compares the fields found.
func (b openMailbox) copies(ref messageRef) (copies, others int, err error) {
	found, err := b.search(ref, ref.anyToken(func(token string) imap.SearchCriteria {
		return or(hasField(headerKey, token), hasField(headerID, messageID(token, ref.domain)))
	}))
	if err != nil || len(found) == 0 {
		return 0, 0, err
	}
	section := &imap.FetchItemBodySection{
		Specifier: imap.PartSpecifierHeader, HeaderFields: []string{headerID, headerKey, "Return-Path", "From", "To"}, Peek: true,
	}
	messages, err := b.fetch(found, imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}})
	for _, m := range messages {
		switch identified, addressed := ref.matches(m.FindBodySection(section)); {
		case identified && addressed:
			copies++
		case identified:
			others++
		}
	}
	return copies, others, err
}

// matches reports whether header has a token of the message, and whether it has its
// sender and recipient. A server adds the envelope's sender as Return-Path when it
// delivers; a digest has one recipient, who is in To.
func (ref messageRef) matches(header []byte) (identified, addressed bool) {
	// An error concerns what follows the last complete field.
	fields, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(header))).ReadMIMEHeader()
	h := mail.Header(fields)
	path, returned := fields["Return-Path"]
	identified = ref.identifies(strings.TrimSpace(h.Get(headerKey)), strings.Trim(h.Get(headerID), " \t<>"))
	return identified, (!returned || isAddress(path[0], ref.sender)) && isAddress(h.Get("From"), ref.sender) && isAddress(h.Get("To"), ref.recipient)
}

// isAddress reports whether a header field holds only that address.
func isAddress(field, address string) bool {
	if a, err := mail.ParseAddress(field); err == nil {
		field = a.Address
	}
	return strings.EqualFold(strings.Trim(field, " \t<>"), address)
}
