package mail

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/textproto"
	"os"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/notify/mail/mailhost"
	"github.com/criticizer/criticizer/review"
)

// TestPostfixAndDovecot compares the assumptions of this package with real mail
// servers.
func TestPostfixAndDovecot(t *testing.T) {
	t.Parallel()
	host := mailhost.New(t)
	box := func(account string) *Mailbox {
		return &Mailbox{Host: "127.0.0.1", Port: host.IMAPPort, TLS: TLSNone, Username: account, Password: secret.New(host.Password), Name: "INBOX"}
	}
	cfg := Config{From: "Criticizer <criticizer@" + mailhost.Domain + ">", Host: "127.0.0.1", Port: host.SMTPPort, TLS: TLSNone, Keys: testKeys}
	p, err := NewEvidencedProvider(newSMTP(t, cfg), EvidenceConfig{
		Journal: box("journal"), Bounces: box("criticizer"), MTALog: host.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	mailer, err := New(slog.New(slog.DiscardHandler), p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := realServers{host, p, mailer}
	r.accepted(t)
	r.refused(t)
	r.bounced(t)
	r.abandoned(t)
	r.queued(t)
}

type realServers struct {
	host     *mailhost.Host
	provider *EvidencedProvider
	mailer   *Mailer
}

func keyOf(account string) review.DeliveryKey {
	return review.DeliveryKey{Changelist: 4711, Recipient: account + "@" + mailhost.Domain, Version: 1}
}

func (r realServers) send(t *testing.T, account string) error {
	t.Helper()
	_, err := r.mailer.Send(t.Context(), findingsReport(), keyOf(account), time.Now())
	return err
}

// want waits until the source with that name returns the state.
func (r realServers) want(t *testing.T, name, account string, want review.EvidenceState) {
	t.Helper()
	k := keyOf(account)
	tr := r.provider.SMTPProvider.cfg.messageRef(k, time.Now())
	for _, s := range append(r.provider.witnesses, r.provider.bounces) {
		if s.name() != name {
			continue
		}
		var got review.EvidenceState
		var err error
		for deadline := time.Now().Add(time.Minute); got != want && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if got, _, err = s.find(t.Context(), tr); err != nil {
				t.Fatalf("%s on %s: %v", name, account, err)
			}
		}
		if got != want {
			t.Errorf("%s says %s is %s, want %s", name, account, got, want)
		}
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
	if err != nil || len(headers) != 1 || headers[0].Get(headerKey) != testKeys.Token(keyOf("author1")) {
		t.Errorf("the mailbox holds %v, %v", headers, err)
	}
}

func (r realServers) refused(t *testing.T) {
	t.Helper()
	for account, class := range map[string]failure.Class{
		"full": failure.UpstreamUnavailable, "grey": failure.UpstreamUnavailable,
		"policy": failure.RecipientRejected, "nobody": failure.RecipientRejected,
	} {
		if err := r.send(t, account); failure.ClassOf(err) != class {
			t.Errorf("%s: %v, want %s", account, err, class)
		}
		r.want(t, "mta log", account, review.EvidenceAbsent)
		r.want(t, "journal", account, review.EvidenceAbsent)
	}
}

func (r realServers) bounced(t *testing.T) {
	t.Helper()
	if err := r.send(t, "gone"); err != nil {
		t.Fatal(err)
	}
	r.want(t, "bounce", "gone", review.EvidenceRejected)
	r.want(t, "mta log", "gone", review.EvidenceRejected)
	r.want(t, "journal", "gone", review.EvidenceAccepted)
	e, err := r.provider.Lookup(t.Context(), keyOf("gone"), time.Now())
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
	for _, line := range []string{"HELO x", "MAIL FROM:<criticizer@" + mailhost.Domain + ">", "RCPT TO:<" + k.Recipient + ">", "DATA"} {
		if err := c.PrintfLine("%s", line); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.ReadResponse(0); err != nil {
			t.Fatal(err)
		}
	}
	id := messageID(testKeys.Token(k), r.provider.SMTPProvider.cfg.MessageIDDomain)
	body := fmt.Sprintf("Message-ID: <%s>\r\n%s: %s\r\n\r\n", id, headerKey, testKeys.Token(k))
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
