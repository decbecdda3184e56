package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
)

// TestPostfixAndDovecot compares the assumptions of package mail with real mail
// servers.
func TestPostfixAndDovecot(t *testing.T) {
	t.Parallel()
	host := newMailHost(t)
	box := func(account string) mail.Mailbox {
		return mail.Mailbox{Server: mail.ServerURL(fmt.Sprintf("imap+insecure://%s@127.0.0.1:%d", account, host.IMAPPort)), Password: secret.New(host.Password)}
	}
	keys, err := evidence.New(secret.New("2020-01-01T00:00:00Z " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{'k'}, 32))))
	if err != nil {
		t.Fatal(err)
	}
	r := realServers{host: host, cfg: mail.Config{
		From: "Criticizer <criticizer@" + mailHostDomain + ">", Server: mail.ServerURL(fmt.Sprintf("smtp+insecure://127.0.0.1:%d", host.SMTPPort)),
		Keys: keys, MessageIDDomain: mailHostDomain, FeedbackRelay: "mx." + mailHostDomain,
	}}
	all := mail.EvidenceConfig{Journal: box("journal"), Bounces: box("criticizer"), MTALog: host.Log, Settle: 10 * time.Minute}
	r.all = r.provider(t, all)
	r.each = map[string]*mail.Provider{
		"journal": r.provider(t, mail.EvidenceConfig{Journal: all.Journal, Settle: all.Settle}),
		"bounce":  r.provider(t, mail.EvidenceConfig{Bounces: all.Bounces, Settle: all.Settle}),
		"mta log": r.provider(t, mail.EvidenceConfig{MTALog: all.MTALog, Settle: 1}),
	}
	// Absence needs a message of ours from before the attempt.
	if err := host.Store("journal", "From: criticizer@"+mailHostDomain+"\r\nX-Criticizer-Key: first\r\n\r\nhello\r\n", time.Now().Add(-3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.accepted(t)
	r.refused(t)
	r.bounced(t)
	r.abandoned(t)
	r.queued(t)
	r.answered(t, mail.Answers{
		Mailbox: all.Bounces, Keys: keys, Relay: "mx." + mailHostDomain, Redact: func(s string) (string, error) { return s, nil },
	})
}

type realServers struct {
	host *mailHost
	cfg  mail.Config
	all  *mail.Provider
	each map[string]*mail.Provider // with one source
}

func (r realServers) provider(t *testing.T, sources mail.EvidenceConfig) *mail.Provider {
	t.Helper()
	p, err := mail.NewProvider(mail.NewServer(slog.New(slog.DiscardHandler), r.cfg), sources)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func reportToRealServer() review.Report {
	return review.Report{
		Changelist: 4711, Version: 1, Author: "ann", Description: "Keep the session cache warm", Outcome: review.OutcomeClean,
		Coverage: review.Coverage{{Path: "//depot/a.go", Lines: []review.Lines{{First: 1, Last: 1, State: review.LinesShown}}}}, ReviewedAt: "2026-05-11T08:00:00Z",
	}
}

func keyOf(account string) review.DeliveryKey {
	return review.DeliveryKey{Changelist: 4711, Recipient: account + "@" + mailHostDomain, Version: 1}
}

func (r realServers) send(t *testing.T, account string) error {
	t.Helper()
	_, err := r.all.Send(t.Context(), reportToRealServer(), keyOf(account), time.Now())
	return err
}

// want waits until the source with that name returns the state. Bounces never prove
// absence; no bounce is an unknown state without a source. A journal alone proves the
// absence of old attempts only, and the log reaches back to the start of the server.
func (r realServers) want(t *testing.T, name, account string, want review.EvidenceState) {
	t.Helper()
	wantSource := name
	switch {
	case want == review.EvidenceAbsent && name == "bounce":
		want, wantSource = review.EvidenceUnknown, "none"
	case want == review.EvidenceAbsent:
		wantSource = "none"
	}
	var age time.Duration
	if name == "journal" {
		age = 2 * time.Hour
	}
	var got review.Evidence
	var err error
	if !poll(time.Minute, 50*time.Millisecond, func() bool {
		got, err = r.each[name].Lookup(t.Context(), keyOf(account), "", time.Now().Add(-age))
		return err != nil || got.State == want && got.Source == wantSource
	}) || err != nil {
		t.Errorf("%s says %s is %s (%s), want %s: %v", name, account, got.State, got.Source, want, err)
	}
}

func (r realServers) accepted(t *testing.T) {
	t.Helper()
	if err := r.send(t, "author1"); err != nil {
		t.Fatal(err)
	}
	r.want(t, "mta log", "author1", review.EvidenceAccepted)
	r.want(t, "journal", "author1", review.EvidenceAccepted)
	r.want(t, "bounce", "author1", review.EvidenceAbsent)
	headers, err := r.host.Headers("author1")
	if err != nil || len(headers) != 1 || headers[0].Get("X-Criticizer-Key") != r.cfg.Keys.Token(keyOf("author1")) {
		t.Errorf("the mailbox holds %v, %v", headers, err)
	}
}

// answered sends the mail that a link of ours writes, and reads it from the mailbox.
func (r realServers) answered(t *testing.T, answers mail.Answers) {
	t.Helper()
	report := reportToRealServer()
	report.Outcome = review.OutcomeFindings
	report.Findings = []review.Finding{{Path: "//depot/a.go", Severity: review.SeverityHigh, Title: "A leak", FeedbackToken: "abcdefg234567"}}
	m, err := mail.Render(report, keyOf("reader1"), "token", r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(regexp.MustCompile(`mailto:\S+%20wrong\S*`).FindString(m.Text))
	if err != nil || link.Opaque == "" {
		t.Fatalf("no link to answer in %s: %v", m.Text, err)
	}
	header := "Authentication-Results: mx." + mailHostDomain + "; dmarc=pass header.from=" + mailHostDomain + "\r\n"
	message := header + "From: Reader <reader1@" + mailHostDomain + ">\r\nTo: " + link.Opaque + "\r\nSubject: " + link.Query().Get("subject") + "\r\n\r\nThe caller closes it.\r\n"
	if err := smtp.SendMail(fmt.Sprintf("127.0.0.1:%d", r.host.SMTPPort), nil, "reader1@"+mailHostDomain, []string{link.Opaque}, []byte(message)); err != nil {
		t.Fatal(err)
	}
	var got []review.FeedbackMail
	if !poll(time.Minute, 50*time.Millisecond, func() bool {
		got, err = answers.Feedback(t.Context())
		return err != nil || len(got) > 0
	}) || err != nil || len(got) != 1 || got[0].Token != "abcdefg234567" || got[0].Sender != "reader1@"+mailHostDomain || got[0].Note != "The caller closes it." {
		t.Errorf("the mailbox holds the answers %+v, %v", got, err)
	}
}

func (r realServers) refused(t *testing.T) {
	t.Helper()
	var done sync.WaitGroup
	for account, class := range map[string]failure.Class{
		"full": failure.UpstreamUnavailable, "grey": failure.UpstreamUnavailable,
		"policy": failure.RecipientRejected, "nobody": failure.RecipientRejected,
	} {
		done.Go(func() { // each absence takes two queries, a second apart
			if err := r.send(t, account); failure.ClassOf(err) != class {
				t.Errorf("%s: %v, want %s", account, err, class)
			}
			r.want(t, "mta log", account, review.EvidenceAbsent)
			r.want(t, "journal", account, review.EvidenceAbsent)
		})
	}
	done.Wait()
}

func (r realServers) bounced(t *testing.T) {
	t.Helper()
	if err := r.send(t, "gone"); err != nil {
		t.Fatal(err)
	}
	r.want(t, "bounce", "gone", review.EvidenceRejected)
	r.want(t, "mta log", "gone", review.EvidenceRejected)
	r.want(t, "journal", "gone", review.EvidenceAccepted)
	e, err := r.all.Lookup(t.Context(), keyOf("gone"), "", time.Now())
	if err != nil || e.State != review.EvidenceRejected {
		t.Errorf("%+v, %v: a bounce outranks acceptance", e, err)
	}
}

// abandoned closes the connection after the header: the log contains the
// Message-ID of a message that was not accepted.
func (r realServers) abandoned(t *testing.T) {
	t.Helper()
	k := keyOf("author2")
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.host.SMTPPort))
	if err != nil {
		t.Fatal(err)
	}
	c := textproto.NewConn(conn)
	if _, _, err := c.ReadResponse(220); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"HELO x", "MAIL FROM:<criticizer@" + mailHostDomain + ">", "RCPT TO:<" + k.Recipient + ">", "DATA"} {
		if err := c.PrintfLine("%s", line); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.ReadResponse(0); err != nil {
			t.Fatal(err)
		}
	}
	m, err := mail.Render(reportToRealServer(), k, r.cfg.Keys.Token(k), r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("Message-ID: <%s>\r\nX-Criticizer-Key: %s\r\n\r\n", m.ID, m.Key)
	for range 2000 {
		body += "a line of a message that never ends\r\n"
	}
	if _, err := conn.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		log, err := os.ReadFile(r.host.Log)
		if err == nil && bytes.Contains(log, []byte("lost connection after DATA")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("Postfix did not notice the end of the connection: %v", err)
		}
	}
	r.want(t, "mta log", "author2", review.EvidenceAbsent)
	r.want(t, "journal", "author2", review.EvidenceAbsent)
}

// queued shows that the journal lacks messages that are in the queue.
func (r realServers) queued(t *testing.T) {
	t.Helper()
	if err := r.host.Hold("author3", "journal"); err != nil {
		t.Fatal(err)
	}
	if err := r.send(t, "author3"); err != nil {
		t.Fatal(err)
	}
	r.want(t, "mta log", "author3", review.EvidenceAccepted)
	r.want(t, "journal", "author3", review.EvidenceAbsent)
	if err := r.host.Release("author3", "journal"); err != nil {
		t.Fatal(err)
	}
	if err := r.host.Flush(); err != nil {
		t.Fatal(err)
	}
	r.want(t, "journal", "author3", review.EvidenceAccepted)
}
