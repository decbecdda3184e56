package mail

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// Log lines as Postfix 3.7 writes them. OURS stands for the Message-ID that is
// looked up.
const (
	logStart = "Nov 20 10:00:00 mail postfix/postfix-script[1]: starting the Postfix mail system\n" +
		"Nov 20 10:00:01 mail postfix/cleanup[2]: 40D1: message-id=<crz1.0000@example.com>\n"
	logTaken = "Nov 21 10:00:01 mail postfix/smtpd[7]: 4ABC: client=localhost[127.0.0.1]\n" +
		"Nov 21 10:00:01 mail postfix/cleanup[8]: 4ABC: message-id=<OURS>\n"
	logActive = "Nov 21 10:00:01 mail postfix/qmgr[9]: 4ABC: from=<criticizer@example.com>, size=900, nrcpt=2 (queue active)\n"
	logQueued = logTaken + logActive
	logGone   = "Nov 21 10:00:02 mail postfix/qmgr[9]: 4ABC: removed\n"
)

func logDelivery(to, status string) string {
	return "Nov 21 10:00:02 mail postfix/lmtp[10]: 4ABC: to=<" + to + ">, relay=127.0.0.1[127.0.0.1]:24, delay=0.1, dsn=2.0.0, status=" + status + "\n"
}

func TestPostfixLog(t *testing.T) {
	t.Parallel()
	const ann, journal = "ann@example.com", "journal@example.com"
	for name, tc := range map[string]struct {
		log  string
		want review.EvidenceState
	}{
		"delivered":                  {logStart + logQueued + logDelivery(ann, "sent (250 Saved)") + logGone, review.EvidenceAccepted},
		"still in the queue":         {logStart + logQueued, review.EvidenceAccepted},
		"deferred":                   {logStart + logQueued + logDelivery(ann, "deferred (connection refused)"), review.EvidenceAccepted},
		"a header without a dot":     {logStart + logTaken + "Nov 21 10:00:01 mail postfix/smtpd[7]: lost connection after DATA (900 bytes) from localhost[127.0.0.1]\n", review.EvidenceAbsent},
		"refused at the dot":         {logStart + logTaken + "Nov 21 10:00:01 mail postfix/cleanup[8]: 4ABC: milter-reject: END-OF-MESSAGE from localhost[127.0.0.1]: 5.7.1 no\n", review.EvidenceAbsent},
		"put on hold":                {logStart + logTaken + "Nov 21 10:00:01 mail postfix/cleanup[8]: 4ABC: hold: header Subject: x from localhost[127.0.0.1]\n", review.EvidenceUnknown},
		"queue id reused":            {logStart + logTaken + strings.ReplaceAll(logQueued, "OURS", "other@example.com"), review.EvidenceAbsent},
		"bounced":                    {logStart + logQueued + logDelivery(ann, "bounced (550 5.1.1 gone)") + logGone, review.EvidenceRejected},
		"bounced after an alias":     {logStart + logQueued + logDelivery("a@elsewhere.example>, orig_to=<Ann@Example.com", "bounced (550 5.1.1 gone)"), review.EvidenceRejected},
		"the journal's copy bounced": {logStart + logQueued + logDelivery(journal, "bounced (550 full)") + logDelivery(ann, "sent (250 Saved)"), review.EvidenceAccepted},
		"expired in the queue":       {logStart + logQueued + "Nov 21 11:00:00 mail postfix/qmgr[9]: 4ABC: from=<criticizer@example.com>, status=expired, returned to sender\n", review.EvidenceRejected},
		"only the journal's expired": {logStart + logQueued + logDelivery(ann, "sent (250 Saved)") + "Nov 21 11:00:00 mail postfix/qmgr[9]: 4ABC: from=<criticizer@example.com>, status=expired, returned to sender\n", review.EvidenceAccepted},
		"not in the log":             {logStart, review.EvidenceAbsent},
		"a longer id is another":     {logStart + strings.ReplaceAll(logQueued, "OURS", "OURS.net"), review.EvidenceAbsent},
		"no message of ours":         {strings.ReplaceAll(logStart, "crz1.", "x."), review.EvidenceUnknown},
		"empty":                      {"", review.EvidenceUnknown},
		"not a log":                  {"crz1.\nmessage-id=<crz1.\x00\n4ABC: removed\n", review.EvidenceUnknown},
		"another log format":         {rfc3339(logStart + logQueued), review.EvidenceAccepted},
		"another service name":       {strings.ReplaceAll(logStart+logQueued, "postfix/", "postfix/submission/"), review.EvidenceAccepted},
	} {
		wantLogState(t, name, 1, "", tc.log, tc.want)
	}
	wantLogState(t, "starts after the attempt", -1, "", logStart, review.EvidenceUnknown)
	wantLogState(t, "rotated within the message", 1, logStart+logTaken, logActive, review.EvidenceAccepted)
}

// wantLogState fails unless the two files of a log show the state of a message that was
// sent some days after logStart.
func wantLogState(t *testing.T, name string, days int, rotated, log string, want review.EvidenceState) {
	t.Helper()
	ref := testRef()
	ref.since = dayAfter(t, logStart).AddDate(0, 0, days-1)
	path := filepath.Join(t.TempDir(), "mail.log")
	if rotated != "" {
		writeLog(t, path+".1", strings.ReplaceAll(rotated, "OURS", ref.id()))
	}
	writeLog(t, path, strings.ReplaceAll(log, "OURS", ref.id()))
	wantState(t, name, postfixLog{path}, ref, want)
}

func dayAfter(t *testing.T, log string) time.Time {
	t.Helper()
	at, ok := logTime(log, time.Now())
	if !ok {
		t.Fatal("the log has no time")
	}
	return at.AddDate(0, 0, 1)
}

// rfc3339 rewrites the times to rsyslog's default format.
func rfc3339(log string) string {
	log = strings.ReplaceAll(log, "Nov 20 10:00:0", "2026-11-20T10:00:0")
	return strings.ReplaceAll(strings.ReplaceAll(log, "Nov 21 10:00:0", "2026-11-21T10:00:0"), " mail postfix", ".123456+00:00 mail postfix")
}

func writeLog(t *testing.T, path, text string) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// A log may have a gap around the attempt. It proves absence only if no line is
// missing.
func TestPostfixLogWithAGapProvesNoAbsence(t *testing.T) {
	t.Parallel()
	const attempt = "Nov 21 10:00:00 mail postfix/smtpd[7]: connect from localhost[127.0.0.1]\n"
	at := func(clock, line string) string { return strings.Replace(line, "10:00:00", clock, 1) }
	for name, tc := range map[string]struct {
		rotated, log string
		want         review.EvidenceState
	}{
		"rotated, and goes on at once":      {logStart + attempt, at("10:00:04", attempt), review.EvidenceAbsent},
		"rotated before the attempt":        {logStart, at("10:00:04", attempt), review.EvidenceUnknown},
		"rotated, and truncated later":      {logStart + attempt, at("10:05:00", attempt), review.EvidenceUnknown},
		"rotated, and nothing since":        {logStart + attempt, "", review.EvidenceUnknown},
		"rotated long ago":                  {logStart, at("09:00:00", attempt) + attempt, review.EvidenceAbsent},
		"rotated, with the attempt missing": {at("10:00:04", attempt), at("10:00:05", attempt), review.EvidenceUnknown},
	} {
		if tc.want == review.EvidenceAbsent && !strings.Contains(tc.rotated+tc.log, idPrefix) {
			t.Fatal("the log names no message of ours")
		}
		wantLogState(t, name, 1, tc.rotated, tc.log, tc.want)
	}
}

// A log that is rotated or truncated during the scan is not evidence.
func TestPostfixLogRotatedDuringTheScanIsAnError(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(path string) error{
		"rotated": func(path string) error {
			return errors.Join(os.Rename(path, path+".2"), os.WriteFile(path, nil, 0o600))
		},
		"truncated": func(path string) error { return os.Truncate(path, 0) },
	} {
		path := filepath.Join(t.TempDir(), "mail.log")
		writeLog(t, path, logStart)
		log, err := os.Open(path)
		testkit.NoError(t, err)
		l := postfixLog{path}
		before := l.unchanged(log)
		_, read := newLogScan(testRef()).read(t.Context(), log, maxLog)
		if err := errors.Join(before, read, meanwhile(path)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.unchanged(log); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = log.Close()
	}
}

// A bounce stays in the log when the mailbox is repaired and an operator resends
// the message. The last attempt counts.
func TestPostfixLogDistinguishesAttempts(t *testing.T) {
	t.Parallel()
	bouncedOnce := logStart + logQueued + logDelivery("ann@example.com", "bounced (550 5.1.1 gone)") + logGone
	again := strings.NewReplacer("Nov 21", "Nov 22", "4ABC", "4DEF").Replace(logQueued)
	sent := strings.NewReplacer("Nov 21", "Nov 22", "4ABC", "4DEF").Replace(logDelivery("ann@example.com", "sent (250 Saved)"))
	for name, tc := range map[string]struct {
		log  string
		want review.EvidenceState
	}{
		"no entry of the second":         {bouncedOnce, review.EvidenceUnknown},
		"the second was accepted":        {bouncedOnce + again, review.EvidenceAccepted},
		"the second was delivered":       {bouncedOnce + again + sent, review.EvidenceAccepted},
		"the second bounced as well":     {bouncedOnce + again + strings.Replace(sent, "status=sent", "status=bounced", 1), review.EvidenceRejected},
		"the second was refused in DATA": {bouncedOnce + strings.Replace(again, "qmgr[9]: 4DEF: from", "cleanup[8]: 4DEF: milter-reject: from", 1), review.EvidenceUnknown},
	} {
		wantLogState(t, name, 2, "", tc.log, tc.want)
	}
}

func TestMissingPostfixLogIsAnError(t *testing.T) {
	t.Parallel()
	found, err := postfixLog{filepath.Join(t.TempDir(), "none")}.find(t.Context(), testRef())
	state := found.state
	if state != review.EvidenceUnknown || failure.ClassOf(err) != failure.UpstreamUnavailable {
		t.Errorf("%s, %v", state, err)
	}
}

func TestLogTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for line, want := range map[string]string{
		"Jan  2 03:00:00 mail x":               "2027-01-02T03:00:00Z",
		"Dec 31 23:59:59 mail x":               "2026-12-31T23:59:59Z",
		"2026-12-31T23:59:59.5+01:00 mail x":   "2026-12-31T22:59:59Z",
		"2026-12-31T23:59:59.5+01:00":          "2026-12-31T22:59:59Z",
		"yesterday mail x":                     "",
		"Feb 30 00:00:00 mail x":               "",
		"":                                     "",
		"Jan  2 03:00:00":                      "2027-01-02T03:00:00Z",
		"2026-12-31 23:59:59 a space, not a T": "",
	} {
		at, ok := logTime(line, now)
		if ok != (want != "") || ok && at.UTC().Truncate(time.Second).Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %t, want %q", line, at, ok, want)
		}
	}
}

func FuzzPostfixLog(f *testing.F) {
	f.Add(logStart + logQueued + logDelivery("ann@example.com", "bounced (gone)"))
	f.Fuzz(func(_ *testing.T, log string) {
		r := newLogScan(testRef())
		for line := range strings.SplitSeq(log, "\n") {
			r.line(line)
		}
	})
}
