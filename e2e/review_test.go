package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

const (
	clean  = "package a\n\nfunc A() int { return 1 }\n"
	faulty = "package a\n\nimport \"os\"\n\n// TODO: close it\nfunc A() int {\n\tf, _ := os.Open(\"x\")\n\t_ = f\n\treturn 1\n}\n"
)

// Review-notification 6 as a whole: one changelist in, one mail out, and a
// second start finds the first.
func TestOneChangelistOneMail(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}, map[string]string{"a.go": faulty}))
	in.startWorker()
	got := in.mustStart("--wait", "2")
	if got.State != review.JobSucceeded || got.Outcome != review.OutcomeFindings || got.Findings == 0 || got.Duplicate {
		t.Fatalf("first start = %+v", got)
	}
	mails := in.mails(2)
	if len(mails) != 1 || mails[0].To[0] != "alice@corp.test" || !strings.Contains(mails[0].Subject, "Change number 2") {
		t.Fatalf("mails = %+v, want one to the author", mails)
	}
	again := in.mustStart("2")
	if !again.Duplicate || again.Outcome != got.Outcome || again.Findings != got.Findings || again.RunID != got.RunID {
		t.Errorf("second start = %+v, want the result of the first, %+v", again, got)
	}
	if calls := in.model.Stats().Calls; calls != 1 || len(in.mails(2)) != 1 {
		t.Errorf("%d model calls and %d mails after two starts, want one of each", calls, len(in.mails(2)))
	}
}

// Only a strictly higher version runs again (notification 6.2, 10.4).
func TestVersionedRerun(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	in.mustStart("--wait", "--review-version", "2", "1")
	if _, err := in.start("--wait", "--review-version", "1", "1"); err == nil || !strings.Contains(err.Error(), string(failure.InputInvalid)) {
		t.Errorf("a lower version ended with %v, want %s", err, failure.InputInvalid)
	}
	// Another key for the same version finds the same job.
	if a := in.mustStart("--wait", "--review-version", "2", "--key", "another", "1"); !a.Duplicate {
		t.Errorf("the same version under another key = %+v, want a duplicate", a)
	}
	if a := in.mustStart("--wait", "--review-version", "3", "1"); a.Duplicate || a.State != review.JobSucceeded {
		t.Errorf("a higher version = %+v, want a new review", a)
	}
	if n := len(in.mails(1)); n != 2 {
		t.Errorf("%d mails, want one per version that ran", n)
	}
}

// Security 9.5.1: no secret of a change reaches the model or the mail.
func TestSecretReachesNeitherModelNorMail(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a1B2c3", 6)
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}, map[string]string{
		"a.go": clean + "\nconst token = \"" + token + "\" // TODO: rotate\n",
	}))
	in.startWorker()
	in.mustStart("--wait", "2")
	mail := in.raw(in.mails(2)[0].ID)
	if strings.Contains(mail, token) {
		t.Error("the token is in the mail")
	}
	if !strings.Contains(mail, "REDACTED") && !strings.Contains(mail, "redact") && !strings.Contains(mail, "masked") {
		t.Errorf("the mail does not tell of the redaction:\n%s", mail)
	}
}

// Review-notification 10.3: a crash at any moment neither loses nor doubles
// the mail. Here the worker is killed while the mail server has accepted the
// message and the answer is swallowed.
func TestKilledWorkerSendsOnce(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.inbox.Inject(inbox.Fault{Stage: inbox.StageKept, Hang: time.Minute})
	worker := in.startWorker()
	in.mustStart("1")
	waitFor(t, "the accepted mail", func() bool { return len(in.mails(1)) == 1 })
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	in.startWorker()
	got := in.mustStart("--wait", "1")
	if got.State != review.JobSucceeded || len(in.mails(1)) != 1 {
		t.Errorf("after the crash: %+v with %d mails, want success and one", got, len(in.mails(1)))
	}
}

// Criticizer-processing 8.3: a model that is down for four attempts costs time, not the review.
func TestModelThatRecoversCostsNothing(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.Unavailable, Times: 2}); err != nil {
		t.Fatal(err)
	}
	in.startWorker()
	if got := in.mustStart("--wait", "1"); got.State != review.JobSucceeded || in.model.Stats().Calls != 3 {
		t.Errorf("%+v after %d model calls", got, in.model.Stats().Calls)
	}
}

func TestChangelistThatDoesNotExistIsSaidSo(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	in.startWorker()
	_, err := in.start("--wait", "0")
	if err == nil || !strings.Contains(err.Error(), "not a positive number") {
		t.Errorf("changelist 0 ended with %v", err)
	}
}
