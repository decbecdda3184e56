package e2e

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	messagemail "github.com/emersion/go-message/mail"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// criticizer review show prints a stored report in every format. Each reading of a
// decrypted artifact is in the audit log with its reason (security 9.4.3).
func TestReportInEveryFormat(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.Findings == 0 {
		t.Fatalf("no findings: %+v", a)
	}
	checks := map[string]func(out string) bool{
		"text": func(out string) bool { return strings.Contains(out, "//depot/a.go") },
		"html": func(out string) bool { return strings.Contains(out, "<html") },
		"json": func(out string) bool {
			var report review.Report
			return json.Unmarshal([]byte(out), &report) == nil && report.Changelist == 1 && len(report.Findings) > 0
		},
		"sarif": func(out string) bool {
			log, err := sarif.FromString(out, sarif.WithStrictValidation())
			return err == nil && len(log.Runs[0].Results) > 0
		},
	}
	for format, check := range checks {
		if out := in.criticizer("review", "show", "1", "--format", format, "--reason", "TICKET-9"); !check(out) {
			t.Errorf("format %s:\n%s", format, out)
		}
	}
	if n := in.countRows("audit_log", "action = 'artifact.show' and detail ->> 'reason' = 'TICKET-9'"); n != len(checks) {
		t.Errorf("%d of %d readings are in the audit log", n, len(checks))
	}
	for args, status := range map[string]int{
		"2": exitFailed, "1 --review-version 2": exitFailed, "1 --format pdf": exitUsage, "x": exitUsage,
	} {
		if r := in.execute(nil, "operator", append([]string{"review", "show"}, strings.Fields(args)...)...); r.status != status || r.stdout != "" {
			t.Errorf("review show %s: %+v, want status %d", args, r, status)
		}
	}
}

// mailedReport returns the text of the only mail about a changelist. It fails the test
// unless that is the text of the stored report, with its omissions and dropped findings:
// the golden files of package mail show how both are written.
func (in *installation) mailedReport(changelist string) string {
	in.t.Helper()
	cl, err := review.ParseChangelist(changelist)
	if err != nil {
		in.t.Fatal(err)
	}
	mails := in.mails(cl)
	if len(mails) != 1 {
		in.t.Fatalf("%d mails about changelist %s, want 1", len(mails), changelist)
	}
	text := in.mailText(mails[0])
	stored, _, err := mail.Bodies(in.report(changelist), time.UTC)
	if err != nil {
		in.t.Fatal(err)
	}
	if strings.TrimSpace(text) != strings.TrimSpace(stored) {
		in.t.Errorf("mailed\n%s\nwant the text of the report\n%s", text, stored)
	}
	return text
}

// mailText returns the text part of a mail.
func (in *installation) mailText(m inbox.Entry) string {
	in.t.Helper()
	message, err := messagemail.CreateReader(strings.NewReader(in.raw(m.ID)))
	if err != nil {
		in.t.Fatal(err)
	}
	text, err := message.NextPart()
	if err != nil {
		in.t.Fatal(err)
	}
	body, err := io.ReadAll(text.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return strings.ReplaceAll(string(body), "\r\n", "\n")
}
