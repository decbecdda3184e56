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
// proves acceptance, not delivery; a message that the server still has in its
// queue is not in it.
type journal struct{ Mailbox }

func (journal) name() string { return "journal" }

// find implements source. A journal that holds no message of ours at all may
// be the wrong mailbox, so it calls none absent.
func (j journal) find(ctx context.Context, t trace) (state review.EvidenceState, copies int, err error) {
	state = review.EvidenceUnknown
	err = j.visit(ctx, func(v visit) error {
		if copies, err = v.copies(t); err != nil || copies > 0 {
			return err
		}
		ours, err := v.matching(t, imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{
			{Header: []imap.SearchCriteriaHeaderField{{Key: headerKey}}},
			{Header: []imap.SearchCriteriaHeaderField{{Key: headerID, Value: idPrefix}}},
		}}})
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

// copies counts the messages with the id or the key of t. IMAP searches for
// parts of a header, so what it finds is compared here.
func (v visit) copies(t trace) (int, error) {
	found, err := v.matching(t, imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{
		{Header: []imap.SearchCriteriaHeaderField{{Key: headerKey, Value: t.token}}},
		{Header: []imap.SearchCriteriaHeaderField{{Key: headerID, Value: t.id}}},
	}}})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	section := &imap.FetchItemBodySection{
		Specifier: imap.PartSpecifierHeader, HeaderFields: []string{headerID, headerKey}, Peek: true,
	}
	messages, err := v.fetch(found, imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}})
	copies := 0
	for _, m := range messages {
		if t.marks(m.FindBodySection(section)) {
			copies++
		}
	}
	return copies, err
}

// marks reports whether a message with this header is the one t is of.
func (t trace) marks(header []byte) bool {
	// The error is of what follows the last whole field.
	h, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(header))).ReadMIMEHeader()
	m := mail.Header(h)
	return strings.TrimSpace(m.Get(headerKey)) == t.token || strings.Trim(m.Get(headerID), " \t<>") == t.id
}
