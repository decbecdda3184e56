package e2e

import (
	"encoding/json"
	"io"
	"strings"

	messagemail "github.com/emersion/go-message/mail"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// checkReportFormats checks that criticizer review show prints the report of changelist 2 in
// every format, and that each reading of a decrypted artifact is in the audit log with its
// reason (security 9.4.3).
func (in *installation) checkReportFormats() {
	in.t.Helper()
	checks := map[string]func(out string) bool{
		"text": func(out string) bool { return strings.Contains(out, "//depot/a.go") },
		"html": func(out string) bool { return strings.Contains(out, "<html") },
		"json": func(out string) bool {
			var report review.Report
			return json.Unmarshal([]byte(out), &report) == nil && report.Changelist == 2 && len(report.Findings) > 0
		},
		"sarif": func(out string) bool {
			log, err := sarif.FromString(out, sarif.WithStrictValidation())
			return err == nil && len(log.Runs[0].Results) > 0
		},
	}
	for format, check := range checks {
		if out := in.criticizer("review", "show", "2", "--format", format, "--reason", "TICKET-9"); !check(out) {
			in.t.Errorf("format %s:\n%s", format, out)
		}
	}
	if n := in.countRows("audit_log", "action = 'artifact.show' and detail ->> 'reason' = 'TICKET-9'"); n != len(checks) {
		in.t.Errorf("%d of %d readings are in the audit log", n, len(checks))
	}
	for args, status := range map[string]int{"1": exitFailed, "2 --review-version 2": exitFailed, "2 --format pdf": exitUsage, "x": exitUsage} {
		if r := in.execute(nil, "criticizer", append([]string{"review", "show"}, strings.Fields(args)...)...); r.status != status || r.stdout != "" {
			in.t.Errorf("review show %s: %+v, want status %d", args, r, status)
		}
	}
}

// checkRetention checks that the retention schedule, which a worker creates, deletes expired
// artifacts of every namespace and no others (security 9.4.5: deletion is automatic and
// verified).
func (in *installation) checkRetention() {
	in.t.Helper()
	count := func(ns review.Namespace) (n int) {
		in.queryRow(`select count(*) from `+string(ns)+`.artifacts`, &n)
		return n
	}
	expired := []review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceAnswer}
	for _, ns := range expired {
		if count(ns) == 0 {
			in.t.Errorf("the review has stored no artifact: %s", ns)
		}
		expireArtifacts(in.t, in.database, ns)
	}
	schedule := in.namespace.ScheduleClient().GetHandle(in.t.Context(), workflows.RetentionSchedule)
	if err := schedule.Trigger(in.t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		in.t.Fatal(err)
	}
	for _, ns := range expired {
		waitFor(in.t, "the deletion of artifacts: "+string(ns), func() bool { return count(ns) == 0 })
	}
	if count(review.NamespaceReport) == 0 {
		in.t.Error("artifacts that have not expired are deleted too")
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
	report := in.report(changelist)
	report.To = review.RoleAuthor
	stored, _, err := mail.Bodies(report, mail.Config{})
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
