package mail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/criticizer/criticizer/failure"
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
	r := logReading{trace: t, queue: map[string]bool{}}
	for _, path := range []string{l.path + ".1", l.path} {
		err := r.read(ctx, path)
		if errors.Is(err, fs.ErrNotExist) && path != l.path {
			continue
		}
		if err != nil {
			return review.EvidenceUnknown, 0, failure.Errorf(failure.UpstreamUnavailable, "look up mail: read mail.mta_log: %w", err)
		}
	}
	switch {
	case r.rejected:
		return review.EvidenceRejected, 1, nil
	case r.accepted:
		return review.EvidenceAccepted, 1, nil
	case r.reachesBack && r.ours:
		return review.EvidenceAbsent, 0, nil
	}
	return review.EvidenceUnknown, 0, nil
}

// A logReading is what was understood of a log so far.
type logReading struct {
	trace
	// queue holds the queue ids of the message. Postfix uses an id again once
	// its message is gone.
	queue       map[string]bool
	accepted    bool
	delivered   bool // to the recipient
	rejected    bool
	reachesBack bool // a line is from before the attempt
	ours        bool // a line names any message of ours
	began       bool // a first line was read
}

func (r *logReading) read(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		if n%10_000 == 0 && ctx.Err() != nil {
			return fmt.Errorf("give up reading: %w", ctx.Err())
		}
		r.line(lines.Text())
	}
	return lines.Err()
}

// entryPattern splits a line behind its time and host: postfix/qmgr[9]: 4ABC: text.
var entryPattern = regexp.MustCompile(`postfix[^\s/]*/(?:\S+/)?(\w+)\[\d+\]: ([0-9A-Za-z]+): (.*)`)

func (r *logReading) line(line string) {
	if !r.began {
		at, ok := logTime(line, time.Now())
		r.began, r.reachesBack = ok, ok && !at.After(r.since)
	}
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
	if named && program == "cleanup" {
		r.queue[queueID] = true
	} else if r.queue[queueID] {
		r.progress(program, queueID, text)
	}
}

// progress follows a message through the queue. Its Message-ID is logged as
// soon as its header is read, so only what the queue manager and those behind
// it say proves that it was accepted.
func (r *logReading) progress(program, queueID, text string) {
	switch {
	case text == "removed" || strings.HasPrefix(text, "client="):
		delete(r.queue, queueID)
		return
	case program == "cleanup" || program == "smtpd":
		return
	case strings.Contains(text, "status=sent"):
		r.delivered = r.delivered || r.names(text)
	case strings.Contains(text, "status=bounced"):
		r.rejected = r.rejected || r.names(text)
	case strings.Contains(text, "status=expired"):
		r.rejected = r.rejected || !r.delivered
	}
	r.accepted = true
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
