package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/criticizer/criticizer/review"
)

// A journal is a mailbox with a copy of every message the server accepted. It
// proves acceptance, not delivery. It does not contain messages that are still
// in the server's queue.
type journal struct{ Mailbox }

func (journal) name() string { return "journal" }

const (
	// maxScanned bounds the messages whose headers are read one by one, in batches.
	maxScanned = 5000
	scanBatch  = 250
	// maxReport bounds how much of a journal report is read, in bytes.
	maxReport = 16 << 10
)

// find implements source. Some servers find nothing by the value of a header, or everything,
// or compare words or a part of it. So an empty search proves absence only if the same search,
// in the same folder, finds a message of ours from before the attempt. Otherwise the headers
// since the attempt are read and compared.
func (j journal) find(ctx context.Context, ref messageRef) (found finding, err error) {
	found.state = review.EvidenceUnknown
	err = j.open(ctx, func(b openMailbox) error {
		r, err := b.lookUp(ref, byHeader)
		if refused(err) || err == nil && !r.decided() {
			r, err = b.scan(ref)
		}
		if err == nil && !r.decided() && r.reports {
			if r, err = b.lookUp(ref, byText); refused(err) {
				return nil
			}
		}
		switch {
		case err != nil:
		case r.copies > 0:
			found.state, found.copies = review.EvidenceAccepted, r.copies
		case r.others == 0 && r.proven:
			found.state = review.EvidenceAbsent
		}
		return err
	})
	return found, err
}

// ProvesAbsence reports whether m, as a journal, could prove now that a message of cfg's sender
// is not in it.
func (m Mailbox) ProvesAbsence(ctx context.Context, cfg Config) (bool, error) {
	never := messageRef{tokens: []string{rand.Text()}, domain: cfg.messageIDDomain(), sender: cfg.fromAddress(), since: time.Now()}
	found, err := journal{m}.find(ctx, never)
	return found.state == review.EvidenceAbsent, err
}

// A tally is what one way of reading the journal shows of a message.
type tally struct {
	copies, others int  // the message, and messages with its token and another sender or recipient
	proven         bool // a message of ours from before the attempt was found in the same way
	reports        bool // the mailbox has journal reports
}

func (c *tally) add(e entry) {
	c.copies, c.others, c.reports = c.copies+e.copies, c.others+e.others, c.reports || e.report
}

func (c *tally) decided() bool { return c.copies+c.others > 0 || c.proven }

// A way is how messages are searched: all of ours, and one by its token.
type way struct {
	all       func(ref messageRef) imap.SearchCriteria
	value     func(token, id string) imap.SearchCriteria
	inReports bool // it finds a message in a journal report
}

var (
	byHeader = way{
		func(ref messageRef) imap.SearchCriteria {
			ours := or(hasField(headerKey, ""), hasField(headerID, idPrefix))
			ours.Header = append(ours.Header, imap.SearchCriteriaHeaderField{Key: "From", Value: ref.sender})
			return ours
		},
		func(token, id string) imap.SearchCriteria {
			return or(hasField(headerKey, token), hasField(headerID, id))
		},
		false,
	}
	// byText finds messages in journal reports.
	byText = way{
		func(messageRef) imap.SearchCriteria { return imap.SearchCriteria{Text: []string{idPrefix}} },
		func(token, _ string) imap.SearchCriteria { return imap.SearchCriteria{Text: []string{token}} },
		true,
	}
)

// lookUp searches for the messages with a token of ref. If it finds none, it searches for one
// of ours from before the attempt in the same way.
func (b openMailbox) lookUp(ref messageRef, by way) (t tally, err error) {
	found, err := b.search(ref, ref.anyToken(func(token string) imap.SearchCriteria { return by.value(token, messageID(token, ref.domain)) }))
	if err != nil || len(found) > maxMessages {
		return t, err
	}
	entries, err := b.entries(ref, imap.UIDSetNum(found...))
	for _, e := range entries {
		t.add(e)
	}
	if err == nil && len(entries) < len(found) {
		err = fmt.Errorf("%d messages found and %d fetched: %w", len(found), len(entries), io.ErrUnexpectedEOF)
	}
	if err != nil || t.decided() {
		return t, err
	}
	ours, err := b.search(ref, by.all(ref))
	if err != nil {
		return t, err
	}
	slices.Sort(ours) // the oldest first
	entries, err = b.entries(ref, imap.UIDSetNum(ours[:min(len(ours), maxMessages)]...))
	i := slices.IndexFunc(entries, func(e entry) bool { return e.token != "" && ref.after(e.at) })
	if err != nil || i < 0 {
		return t, err
	}
	again, err := b.search(ref, by.value(entries[i].token, messageID(entries[i].token, ref.domain)))
	if err != nil || len(again) > maxMessages || !slices.Contains(again, entries[i].uid) {
		return t, err
	}
	if by.inReports {
		t.proven = true
		return t, nil
	}
	reports, err := b.search(ref, hasField(headerReport, ""))
	t.proven = len(reports) == 0
	return t, err
}

// scan reads the headers of the newest messages. proven is set if it has read all since the
// attempt, and one of ours from before it: otherwise older messages may be gone, or the mailbox
// is another one.
func (b openMailbox) scan(ref messageRef) (t tally, err error) {
	total := int(b.Mailbox().NumMessages)
	var complete, control bool
	for last := total; last > 0 && total-last < maxScanned && !t.proven; last -= scanBatch {
		first := max(1, last-scanBatch+1)
		entries, err := b.entries(ref, imap.SeqSet{imap.SeqRange{Start: uint32(first), Stop: uint32(last)}}) //nolint:gosec // numbers of messages of one mailbox
		if err != nil || len(entries) <= last-first {                                                        // with fewer, the server contradicts itself
			return t, err
		}
		older := 0
		for _, e := range entries {
			t.add(e)
			control = control || e.token != "" && ref.after(e.at)
			if e.at.Before(ref.since.Add(-clockSkew)) {
				older++
			}
		}
		complete = complete || first == 1 || older == len(entries)
		t.proven = complete && control
	}
	return t, nil
}

// An entry is what a journal has of a message.
type entry struct {
	uid            imap.UID
	at             time.Time // when the journal got it
	report         bool      // it is a journal report of Exchange, which contains the message
	token          string    // of a message of ours, whichever it is
	copies, others int       // 1 if it is the message of ref; others if its sender or recipient is another
}

// entries reads messages: their headers, and the beginning of journal reports.
func (b openMailbox) entries(ref messageRef, which imap.NumSet) (entries []entry, err error) {
	if uids, ok := which.(imap.UIDSet); ok && len(uids) == 0 {
		return nil, nil
	}
	header := &imap.FetchItemBodySection{
		Specifier: imap.PartSpecifierHeader, HeaderFields: []string{headerID, headerKey, "Return-Path", "From", "To", headerReport}, Peek: true,
	}
	messages, err := b.read(which, header)
	if err != nil {
		return nil, err
	}
	var reports []imap.UID
	for _, m := range messages {
		e, isReport := ref.entry(m.FindBodySection(header))
		e.uid, e.at = m.UID, m.InternalDate
		if isReport {
			reports = append(reports, m.UID)
			continue
		}
		entries = append(entries, e)
	}
	if len(reports) == 0 {
		return entries, nil
	}
	whole := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxReport}}
	messages, err = b.read(imap.UIDSetNum(reports...), whole)
	for _, m := range messages {
		e := entry{report: true}
		_, _ = eachPart(m.FindBodySection(whole), func(contentType string, body []byte) {
			if contentType == "message/rfc822" {
				e, _ = ref.entry(body)
			}
		})
		e.uid, e.at, e.report = m.UID, m.InternalDate, true
		entries = append(entries, e)
	}
	return entries, err
}

// headerReport marks a journal report of Exchange and Microsoft 365.
const headerReport = "X-Ms-Journal-Report"

// entry returns what a header shows, and whether it is of a journal report.
func (ref messageRef) entry(header []byte) (e entry, isReport bool) {
	h := parseHeader(header)
	if _, ok := h[headerReport]; ok {
		return e, true
	}
	if isAddress(h.Get("From"), ref.sender) {
		e.token = strings.TrimSpace(h.Get(headerKey))
		if token, ok := strings.CutPrefix(strings.Trim(h.Get(headerID), " \t<>"), idPrefix); ok && e.token == "" {
			e.token, _ = strings.CutSuffix(token, "@"+ref.domain)
		}
	}
	switch identified, addressed := ref.matches(header); {
	case identified && addressed:
		e.copies = 1
	case identified:
		e.others = 1
	}
	return e, false
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

// matches reports whether header has a token of the message, and whether it has its
// sender and recipient. A server adds the envelope's sender as Return-Path when it
// delivers; a digest has one recipient, who is in To.
func (ref messageRef) matches(header []byte) (identified, addressed bool) {
	h := parseHeader(header)
	path, returned := h["Return-Path"]
	identified = ref.identifies(strings.TrimSpace(h.Get(headerKey)), strings.Trim(h.Get(headerID), " \t<>"))
	return identified, (!returned || isAddress(path[0], ref.sender)) && isAddress(h.Get("From"), ref.sender) && isAddress(h.Get("To"), ref.recipient)
}

// parseHeader parses a header that may be cut off.
func parseHeader(header []byte) mail.Header {
	// An error concerns what follows the last complete field.
	fields, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(header))).ReadMIMEHeader()
	return mail.Header(fields)
}

// isAddress reports whether a header field holds only that address.
func isAddress(field, address string) bool {
	if a, err := mail.ParseAddress(field); err == nil {
		field = a.Address
	}
	return strings.EqualFold(strings.Trim(field, " \t<>"), address)
}
