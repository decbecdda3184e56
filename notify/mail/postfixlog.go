package mail

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A postfixLog is the log file of a Postfix, together with the previous file
// that log rotation renamed to FILE.1. It shows a message at once, even while
// the message is in the queue. It does not count copies: a content filter that
// returns a message to Postfix causes a second entry.
type postfixLog struct{ path string }

func (postfixLog) name() string { return "mta log" }

// find implements source. A log that starts after the attempt, or names no message of ours
// from before it, may be the wrong one, so it proves no absence.
func (l postfixLog) find(ctx context.Context, ref messageRef) (found finding, err error) {
	s := newLogScan(ref)
	if err := l.scan(ctx, s); err != nil {
		return unknownState, failure.Errorf(failure.UpstreamUnavailable, "look up mail: read mail.mta_log: %w", err)
	}
	switch {
	case !s.rejected.IsZero():
		return finding{ref.rejectedAt(s.rejected), 1, s.rejection}, nil
	case s.accepted:
		return finding{state: review.EvidenceAccepted, copies: 1}, nil
	case s.complete() && s.ours && !s.held && !s.foreign:
		return finding{state: review.EvidenceAbsent}, nil
	}
	return unknownState, nil
}

// scan reads the previous file, if it exists, and then the log. It opens the log
// first: otherwise a rotation in between would hide lines. A rotation or
// truncation during the scan is an error.
func (l postfixLog) scan(ctx context.Context, s *logScan) error {
	log, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if previous, err := os.Open(l.path + ".1"); err == nil {
		defer func() { _ = previous.Close() }()
		if s.previous, err = s.read(ctx, previous, maxLog); err != nil {
			return err
		}
	}
	if s.log, err = s.read(ctx, log, maxLog); err != nil {
		return err
	}
	return l.unchanged(log)
}

// unchanged returns an error if file is another file than the log, or was read
// beyond the log's end.
func (l postfixLog) unchanged(file *os.File) error {
	read, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(l.path)
	if err == nil && (!os.SameFile(opened, now) || now.Size() < read) {
		err = errors.New("it was rotated or truncated meanwhile")
	}
	return err
}

// A logScan is the state of one message after the lines read so far.
type logScan struct {
	messageRef
	// queue has the queue ids of the message. Postfix reuses an id once its message
	// is gone.
	queue     map[string]*queued
	accepted  bool
	delivered bool      // to the recipient
	rejected  time.Time // zero if it was not, or was accepted again since
	rejection reply
	held      bool // it was put on hold, and may be released
	foreign   bool // a message with its Message-ID has another sender or recipient
	ours      bool // a line from before the attempt names a message of ours
	// When the lines of the files were written; zero if a file does not exist.
	previous, log period
}

// A queued message is one in the queue, under one id.
type queued struct {
	accepted bool // from our sender
	named    bool // to our recipient, as far as is logged
}

// A period lasts from the first to the last line of a file.
type period struct{ first, last time.Time }

func (p period) startsBy(at time.Time) bool { return !p.first.IsZero() && !p.first.After(at) }

func newLogScan(ref messageRef) *logScan {
	return &logScan{messageRef: ref, queue: map[string]*queued{}}
}

// maxLog bounds what is read of a file, in bytes, from its end. A log that is read
// from a time after the attempt proves no absence.
const maxLog = 256 << 20

func (s *logScan) read(ctx context.Context, file *os.File, limit int64) (period, error) {
	info, err := file.Stat()
	if err != nil {
		return period{}, err
	}
	cut, err := file.Seek(max(0, info.Size()-limit), io.SeekStart)
	if err != nil {
		return period{}, err
	}
	lines := bufio.NewScanner(io.LimitReader(file, limit))
	lines.Buffer(nil, 1<<20)
	if cut > 0 {
		lines.Scan() // the rest of a line
	}
	first, last := "", ""
	for n := 0; lines.Scan(); n++ {
		if n%10_000 == 0 && ctx.Err() != nil {
			return period{}, ctx.Err()
		}
		last = lines.Text()
		first = cmp.Or(first, last)
		s.line(last)
	}
	var p period
	p.first, _ = logTime(first, time.Now())
	p.last, _ = logTime(last, time.Now())
	return p, lines.Err()
}

// complete reports whether no line since the attempt is missing. If the attempt
// started before the rotation, the log must start right after the last line of
// the previous file: otherwise it may have been truncated.
func (s *logScan) complete() bool {
	const pause = 10 * time.Second
	return s.log.startsBy(s.since) || s.previous.startsBy(s.since) && s.log.startsBy(s.previous.last.Add(pause))
}

// entryPattern splits a line after its time and host: postfix/qmgr[9]: 4ABC: text.
var entryPattern = regexp.MustCompile(`postfix[^\s/]*/(?:\S+/)?(\w+)\[\d+\]: ([0-9A-Za-z]+): (.*)`)

// line takes the queue ids of the message from a line, and follows the entries of
// the ids known so far.
func (s *logScan) line(line string) {
	_, id, _ := strings.Cut(line, "message-id=<")
	id, _, _ = strings.Cut(id, ">")
	named := s.identifies("-", id)
	if !s.ours && strings.HasPrefix(id, idPrefix) {
		at, ok := logTime(line, time.Now())
		s.ours = ok && s.after(at)
	}
	if !named && len(s.queue) == 0 {
		return
	}
	entry := entryPattern.FindStringSubmatch(line)
	if entry == nil {
		return
	}
	program, queueID, text := entry[1], entry[2], entry[3]
	if _, known := s.queue[queueID]; named && program == "cleanup" {
		s.queue[queueID] = &queued{}
	} else if known {
		s.entry(line, program, queueID, text)
	}
}

// entry follows a message through the queue. Postfix logs its Message-ID when the
// header is read, so only entries of the queue manager and later programs prove
// that the message was accepted.
func (s *logScan) entry(line, program, queueID, text string) {
	q := s.queue[queueID]
	from, active := strings.CutPrefix(text, "from=<")
	from, _, _ = strings.Cut(from, ">")
	switch {
	case text == "removed" || strings.HasPrefix(text, "client="):
		s.leave(queueID, text == "removed" && q.accepted && !q.named)
	case active && !strings.EqualFold(from, s.sender):
		s.leave(queueID, true)
	case program == "cleanup" || program == "smtpd":
		s.held = s.held || strings.HasPrefix(text, "hold:")
	case active && !q.accepted: // even if it was rejected under another id
		q.accepted, s.accepted, s.delivered, s.rejected = true, true, false, time.Time{}
	case q.accepted:
		s.delivery(line, q, text)
	}
}

// leave ends a queue id, whose message may have had another sender or recipient.
func (s *logScan) leave(queueID string, foreign bool) {
	delete(s.queue, queueID)
	if foreign {
		s.foreign, s.accepted = true, false
	}
}

// delivery follows the entries of the programs that deliver.
func (s *logScan) delivery(line string, q *queued, text string) {
	ours := s.names(text)
	q.named = q.named || ours
	switch {
	case strings.Contains(text, "status=sent"):
		s.delivered = s.delivered || ours
	case strings.Contains(text, "status=bounced") && ours, strings.Contains(text, "status=expired") && !s.delivered:
		at, ok := logTime(line, time.Now())
		if !ok {
			at = time.Now()
		}
		s.rejected = at
		_, status, _ := strings.Cut(text, "dsn=")
		status, _, _ = strings.Cut(status, ",")
		_, said, _ := strings.Cut(text, "said: ")
		s.rejection = statusReply(cmp.Or(status, "4.4.7"), said) // expired: no server has said anything
	}
}

// names reports whether an entry is about the recipient, and not about one that
// the server added, such as the journal.
func (s *logScan) names(text string) bool {
	text = strings.ToLower(text)
	to := "to=<" + strings.ToLower(s.recipient) + ">"
	return strings.HasPrefix(text, to) || strings.Contains(text, " orig_"+to)
}

// logTime parses the time at the start of a line, in the form of RFC 3339 or in
// the traditional form, which has neither year nor zone.
func logTime(line string, now time.Time) (time.Time, bool) {
	first, _, _ := strings.Cut(line, " ")
	if at, err := time.Parse(time.RFC3339Nano, first); err == nil {
		return at, true
	}
	if len(line) < len(time.Stamp) {
		return time.Time{}, false
	}
	at, err := time.ParseInLocation(time.Stamp, line[:len(time.Stamp)], now.Location())
	if err != nil {
		return time.Time{}, false
	}
	at = at.AddDate(now.Year()-at.Year(), 0, 0)
	if at.After(now.AddDate(0, 0, 1)) {
		at = at.AddDate(-1, 0, 0)
	}
	return at, true
}
