package mail

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// guessed is a token of the right form, made without the key from all that an author
// knows.
var guessed = keysOf("2020-01-01T00:00:00Z", 'x').Token(testKey)

// Messages that others send to our mail server, journal or bounce mailbox. TOKEN
// stands for a token.
const (
	fromUs      = "Return-Path: <criticizer@example.com>\nMessage-ID: <crz1.TOKEN@example.com>\nX-Criticizer-Key: TOKEN\n"
	fromMallory = "Return-Path: <mallory@example.com>\nMessage-ID: <crz1.TOKEN@example.com>\nX-Criticizer-Key: TOKEN\n"
	toMallory   = "From: criticizer@example.com\nTo: mallory@example.com\n"
	ours        = "Message-ID: <crz1.other@example.com>\n" + toAnn + "\n"
)

// Only a message with our key, sender and recipient is evidence in the journal. With
// our key and another envelope it contradicts itself: then nothing is proved.
func TestForgedJournal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message, token string
		want           review.EvidenceState
	}{
		"the message":              {fromUs + toAnn, testToken, review.EvidenceAccepted},
		"a guessed key":            {fromUs + toAnn, guessed, review.EvidenceAbsent},
		"no key":                   {fromUs + toAnn, "", review.EvidenceAbsent},
		"another envelope sender":  {fromMallory + toAnn, testToken, review.EvidenceUnknown},
		"another sender in From":   {fromUs + "From: mallory@example.com\nTo: ann@example.com\n", testToken, review.EvidenceUnknown},
		"another recipient":        {fromUs + toMallory, testToken, review.EvidenceUnknown},
		"one recipient of several": {fromUs + "From: criticizer@example.com\nTo: ann@example.com, mallory@example.com\n", testToken, review.EvidenceUnknown},
	} {
		box := serveMailbox(t, nil, stored{ours, time.Hour}, stored{strings.ReplaceAll(tc.message, "TOKEN", tc.token) + "\nhi\n", 0})
		wantState(t, name, journal{box}, testRef(), tc.want)
	}
}

// A mail with the Message-ID of a digest does not make a rejected digest count as sent,
// whoever sent it (notification 8.2).
func TestForgedMailDoesNotCountAsSent(t *testing.T) {
	t.Parallel()
	logOf := func(token, from, to string) string {
		lines := logStart + logQueued + logDelivery(to, "sent (250 Saved)") + logGone
		return strings.NewReplacer("OURS", messageID(token, testDomain), "from=<criticizer@example.com>", "from=<"+from+">").Replace(lines)
	}
	for name, text := range map[string]string{
		"a guessed key":     logOf(guessed, "criticizer@example.com", "ann@example.com"),
		"another sender":    logOf(testToken, "mallory@example.com", "ann@example.com"),
		"another recipient": logOf(testToken, "criticizer@example.com", "mallory@example.com"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "mail.log")
			writeLog(t, log, text)
			server := serveScript(t, map[string]string{"dot": "554 5.7.1 no"})
			p, err := NewProvider(newSMTP(t, plainConfig(server.addr)), evidenceWith(func(c *EvidenceConfig) { c.MTALog = log }))
			testkit.NoError(t, err)
			if id, err := p.Send(t.Context(), findingsReport(), testKey, time.Now().Add(-recordTime)); err == nil || id != "" {
				t.Errorf("the digest counts as sent: id %q", id)
			}
			if e, err := p.query(t.Context(), testRef()); err != nil || e.State == review.EvidenceAccepted {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}

// A bounce counts only as a report without a sender about our message to our recipient.
func TestForgedBounce(t *testing.T) {
	t.Parallel()
	about := func(token, addresses string) string {
		return bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+token+"\n"+addresses+"\n")
	}
	for name, tc := range map[string]struct {
		message string
		want    review.EvidenceState
	}{
		"a report":               {"Return-Path: <>\n" + about(testToken, toAnn), review.EvidenceRejected},
		"a guessed key":          {"Return-Path: <>\n" + about(guessed, toAnn), review.EvidenceAbsent},
		"with a sender":          {"Return-Path: <mallory@example.com>\n" + about(testToken, toAnn), review.EvidenceAbsent},
		"of a mail to another":   {"Return-Path: <>\n" + about(testToken, toMallory), review.EvidenceAbsent},
		"of a mail from another": {"Return-Path: <>\n" + about(testToken, "From: mallory@example.com\nTo: ann@example.com\n"), review.EvidenceAbsent},
	} {
		wantState(t, name, bounces{serveMailbox(t, nil, stored{tc.message, 0})}, testRef(), tc.want)
	}
}

// The inbox counts copies with our envelope only, whose addresses may be in other letters.
func TestForgedMailInTheInbox(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to string
		want     review.EvidenceState
	}{
		"the message":       {"Criticizer@example.com", "Ann@example.com", review.EvidenceAccepted},
		"another sender":    {"mallory@example.com", "ann@example.com", review.EvidenceAbsent},
		"another recipient": {"criticizer@example.com", "mallory@example.com", review.EvidenceAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startInbox(t)
			m := render(t, findingsReport())
			m.From.Address, m.To = tc.from, tc.to
			_, err := newSMTP(t, cfg).send(t.Context(), m)
			testkit.NoError(t, err)
			expectEvidence(t, newInboxMailer(t, io.Discard, cfg, b.URL()), testKey, longAgo, tc.want)
		})
	}
}

// A worker that resumes after a rotation finds what was sent under the old key, if it is kept.
func TestLookupAfterAKeyRotation(t *testing.T) {
	t.Parallel()
	b, cfg := startInbox(t)
	_, err := newInboxMailer(t, io.Discard, cfg, b.URL()).Send(t.Context(), findingsReport(), testKey, time.Now())
	testkit.NoError(t, err)
	rotated := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + " " + lineOf('n')
	for keys, want := range map[string]review.EvidenceState{
		rotated + "\n2020-01-01T00:00:00Z " + lineOf('k'): review.EvidenceAccepted,
		rotated: review.EvidenceUnknown,
	} {
		cfg.Keys = keysText(t, keys)
		for _, since := range []time.Time{longAgo, time.Now()} { // the last attempt, under either key
			e, err := newInboxMailer(t, io.Discard, cfg, b.URL()).Lookup(t.Context(), testKey, "", since)
			if err != nil || e.State != want {
				t.Errorf("since %s: %+v, %v, want %s", since, e, err, want)
			}
		}
	}
}

// A look-up reads a bounded number of messages. The journal is then read header by header;
// what bounces are beyond that is unknown.
func TestLookupIsBounded(t *testing.T) {
	t.Parallel()
	copyOf := strings.ReplaceAll(fromUs, "TOKEN", testToken) + toAnn + "\n"
	box := serveMailbox(t, nil, slices.Repeat([]stored{{copyOf, 0}}, maxMessages+1)...)
	wantState(t, "too many copies", journal{box}, testRef(), review.EvidenceAccepted)
	wantState(t, "too many bounces", bounces{box}, testRef(), review.EvidenceUnknown)
}

// Of a log that is longer than is read, only the end counts, which proves no absence of
// an older message.
func TestLongLogIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	tr := testRef()
	tr.since = dayAfter(t, logStart)
	path := filepath.Join(t.TempDir(), "mail.log")
	end := "Nov 22 10:00:01 mail postfix/cleanup[2]: 40D1: message-id=<crz1.0000@example.com>\n"
	writeLog(t, path, logStart+strings.ReplaceAll(logQueued, "OURS", tr.id())+end)
	for limit, want := range map[int64]struct{ accepted, complete bool }{1 << 20: {true, true}, int64(len(end)) + 10: {false, false}} {
		s := newLogScan(tr)
		file, err := os.Open(path)
		testkit.NoError(t, err)
		s.log, err = s.read(t.Context(), file, limit)
		if err = errors.Join(err, file.Close()); err != nil || s.accepted != want.accepted || s.complete() != want.complete || s.ours != want.complete {
			t.Errorf("limit %d: accepted %t, complete %t, %v", limit, s.accepted, s.complete(), err)
		}
	}
}

// Mailboxes are searched for the tokens of all keys.
func TestMailboxesAfterAKeyRotation(t *testing.T) {
	t.Parallel()
	cfg := Config{From: testFrom, MessageIDDomain: testDomain, Keys: keysText(t, testStart.Add(-time.Hour).UTC().Format(time.RFC3339)+" "+lineOf('n')+
		"\n2020-01-01T00:00:00Z "+lineOf('k')+"\n2019-01-01T00:00:00Z "+lineOf('o'))}
	ref := cfg.messageRef(testKey, testStart)
	for token, want := range map[string]review.EvidenceState{testToken: review.EvidenceAccepted, cfg.Keys.Token(testKey): review.EvidenceAccepted, guessed: review.EvidenceAbsent} {
		box := serveMailbox(t, nil, stored{ours, time.Hour}, stored{strings.ReplaceAll(fromUs, "TOKEN", token) + toAnn + "\nhi\n", 0})
		wantState(t, "journal", journal{box}, ref, want)
		report := bounce("failed", "ann@example.com", "message/rfc822", "X-Criticizer-Key: "+token+"\n"+toAnn+"\n")
		if want == review.EvidenceAccepted {
			want = review.EvidenceRejected
		}
		wantState(t, "bounces", bounces{serveMailbox(t, nil, stored{report, 0})}, ref, want)
	}
}
