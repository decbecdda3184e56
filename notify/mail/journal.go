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
		if copies, err = b.copies(ref); err != nil || copies > 0 {
			return err
		}
		ours, err := b.search(ref, eitherField("", idPrefix))
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

// eitherField matches a key or a Message-ID that contains the text given. An
// empty text matches every message that has the field.
func eitherField(key, id string) imap.SearchCriteria {
	return imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{
		{Header: []imap.SearchCriteriaHeaderField{{Key: headerKey, Value: key}}},
		{Header: []imap.SearchCriteriaHeaderField{{Key: headerID, Value: id}}},
	}}}
}

// copies counts the messages with the id or the key of ref. An IMAP search
// matches parts of a field, so copies compares the fields found.
func (b openMailbox) copies(ref messageRef) (int, error) {
	found, err := b.search(ref, eitherField(ref.token, ref.id))
	if err != nil || len(found) == 0 {
		return 0, err
	}
	section := &imap.FetchItemBodySection{
		Specifier: imap.PartSpecifierHeader, HeaderFields: []string{headerID, headerKey}, Peek: true,
	}
	messages, err := b.fetch(found, imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}})
	copies := 0
	for _, m := range messages {
		if ref.matches(m.FindBodySection(section)) {
			copies++
		}
	}
	return copies, err
}

// matches reports whether header is that of the message.
func (ref messageRef) matches(header []byte) bool {
	// An error concerns what follows the last complete field.
	h, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(header))).ReadMIMEHeader()
	m := mail.Header(h)
	return strings.TrimSpace(m.Get(headerKey)) == ref.token || strings.Trim(m.Get(headerID), " \t<>") == ref.id
}
