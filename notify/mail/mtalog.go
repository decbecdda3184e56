package mail

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An mtaLog is the file a Postfix logs to, with the one before it that log
// rotation left as FILE.1. It tells of a message at once, also while the server
// has it in its queue. It does not count copies: a content filter that hands a
// message back has it logged twice.
type mtaLog struct{ path string }

func (mtaLog) name() string { return "mta log" }

// find implements source. A log that begins after the attempt, or names no
// message of ours, may be the wrong one, so it calls none absent.
func (l mtaLog) find(ctx context.Context, t trace) (state review.EvidenceState, copies int, err error) {
	r := newLogReading(t)
	if err := l.read(ctx, r); err != nil {
		return review.EvidenceUnknown, 0, failure.Errorf(failure.UpstreamUnavailable, "look up mail: read mail.mta_log: %w", err)
	}
	switch {
	case !r.rejected.IsZero():
		return t.rejectedAt(r.rejected), 1, nil
	case r.accepted:
		return review.EvidenceAccepted, 1, nil
	case r.reachesBack() && r.ours && !r.held:
		return review.EvidenceAbsent, 0, nil
	}
	return review.EvidenceUnknown, 0, nil
}

// read reads the file rotated last, if there is one, and then the log, which is
// opened first: a rotation meanwhile would hide what is between them. That it was
// rotated or truncated while it was read is an error.
func (l mtaLog) read(ctx context.Context, r *logReading) error {
	log, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if rotated, err := os.Open(l.path + ".1"); err == nil {
		defer func() { _ = rotated.Close() }()
		if r.rotated, err = r.read(ctx, rotated); err != nil {
			return err
		}
	}
	if r.log, err = r.read(ctx, log); err != nil {
		return err
	}
	return l.unchanged(log)
}

// unchanged returns an error if file is no longer the log, or no longer all of it.
func (l mtaLog) unchanged(file *os.File) error {
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

// A logReading is what was understood of a log so far.
type logReading struct {
	trace
	// queue holds the queue ids of the message, and whether it was accepted under
	// them. Postfix uses an id again once its message is gone.
	queue     map[string]bool
	accepted  bool
	delivered bool      // to the recipient
	rejected  time.Time // zero if it was not, or was accepted anew since
	held      bool      // it was put aside, perhaps to be released
	ours      bool      // a line names any message of ours
	// The files, as far as they were there.
	rotated, log period
}

// A period is when the first and the last line of a file were written.
type period struct{ first, last time.Time }

func (p period) begins(at time.Time) bool { return !p.first.IsZero() && !p.first.After(at) }

func newLogReading(t trace) *logReading { return &logReading{trace: t, queue: map[string]bool{}} }

func (r *logReading) read(ctx context.Context, file io.Reader) (period, error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	first, last := "", ""
	for n := 0; lines.Scan(); n++ {
		if n%10_000 == 0 && ctx.Err() != nil {
			return period{}, fmt.Errorf("give up reading: %w", ctx.Err())
		}
		last = lines.Text()
		first = cmp.Or(first, last)
		r.line(last)
	}
	var p period
	p.first, _ = logTime(first, time.Now())
	p.last, _ = logTime(last, time.Now())
	return p, lines.Err()
}

// reachesBack reports whether no line is missing since the attempt began. If it
// began before the rotation, the log has to go on at once where the rotated file
// ends: otherwise it may have been truncated since.
func (r *logReading) reachesBack() bool {
	const pause = 10 * time.Second
	return r.log.begins(r.since) || r.rotated.begins(r.since) && r.log.begins(r.rotated.last.Add(pause))
}

// entryPattern splits a line behind its time and host: postfix/qmgr[9]: 4ABC: text.
var entryPattern = regexp.MustCompile(`postfix[^\s/]*/(?:\S+/)?(\w+)\[\d+\]: ([0-9A-Za-z]+): (.*)`)

// line learns from one line the queue ids of the message, and follows what is logged
// under those it knows.
func (r *logReading) line(line string) {
	id := "message-id=<" + r.id + ">"
	named := strings.Contains(line, id)
	r.ours = r.ours || strings.Contains(line, "message-id=<"+idPrefix)
	if !named && len(r.queue) == 0 {
		return
	}
	entry := entryPattern.FindStringSubmatch(line)
	if entry == nil {
		return
	}
	program, queueID, text := entry[1], entry[2], entry[3]
	if _, known := r.queue[queueID]; named && program == "cleanup" {
		r.queue[queueID] = false
	} else if known {
		r.progress(line, program, queueID, text)
	}
}

// progress follows a message through the queue. Its Message-ID is logged as
// soon as its header is read, so only what the queue manager and those behind
// it say proves that it was accepted.
func (r *logReading) progress(line, program, queueID, text string) {
	switch {
	case text == "removed" || strings.HasPrefix(text, "client="):
		delete(r.queue, queueID)
		return
	case program == "cleanup" || program == "smtpd":
		r.held = r.held || strings.HasPrefix(text, "hold:")
		return
	}
	if !r.queue[queueID] { // accepted, whatever became of it under another id
		r.queue[queueID], r.accepted, r.delivered, r.rejected = true, true, false, time.Time{}
	}
	switch {
	case strings.Contains(text, "status=sent"):
		r.delivered = r.delivered || r.names(text)
	case strings.Contains(text, "status=bounced") && r.names(text),
		strings.Contains(text, "status=expired") && !r.delivered:
		if at, ok := logTime(line, time.Now()); ok {
			r.rejected = at
		} else {
			r.rejected = time.Now()
		}
	}
}

// names reports whether an entry is about the recipient, and not one the
// server added, such as the journal.
func (r *logReading) names(text string) bool {
	text = strings.ToLower(text)
	to := "to=<" + strings.ToLower(r.recipient) + ">"
	return strings.HasPrefix(text, to) || strings.Contains(text, " orig_"+to)
}

// logTime reads the time a line begins with, in the form of RFC 3339 or in the
// traditional one, which has neither year nor zone.
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
