package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// An oncallWebhook returns 503 until setUp is called.
type oncallWebhook struct {
	mu    sync.Mutex
	up    bool
	tried int
	pages []failure.Page
}

func (p *oncallWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	var page failure.Page
	if !p.up || json.NewDecoder(r.Body).Decode(&page) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.pages = append(p.pages, page)
}

func (p *oncallWebhook) setUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = true
}

func (p *oncallWebhook) seen() (tried int, pages []failure.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried, append([]failure.Page(nil), p.pages...)
}

// A rejected key notifies the operator on call. A replay that fails with the same class
// is escalated (processing 8.5) and notifies again, once per channel. An unreachable
// webhook delays neither the dead letter nor the mail.
func TestEscalationNotifiesOnCall(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	webhook := &oncallWebhook{}
	server := httptest.NewServer(webhook)
	t.Cleanup(server.Close)
	in.disableBreaker()
	in.env = append(in.env, "CRITICIZER_ONCALL_WEBHOOK_URL="+server.URL, "CRITICIZER_ONCALL_ADDRESS=oncall@corp.test")
	in.startWorker()
	in.rejectKey(2)
	id := in.deadLetter("1", failure.AuthDenied)
	waitFor(t, "the mail about the key", func() bool { return len(in.oncallMails()) == 1 })
	if body := in.raw(in.oncallMails()[0].ID); !strings.Contains(body, string(failure.AuthDenied)) {
		t.Errorf("the first mail does not name the class:\n%s", body)
	}
	triedBefore, _ := webhook.seen()
	in.reset("LastWorkflowTask", "--workflow-id", id)
	if letter := in.waitForEnd(id); letter.ErrorClass != failure.AuthDenied {
		t.Fatalf("the replay ended with %+v", letter)
	}
	waitFor(t, "the second try at the webhook, with the mail there,", func() bool {
		tried, _ := webhook.seen()
		return tried >= triedBefore+2 && len(in.oncallMails()) == 2
	})
	webhook.setUp()
	waitFor(t, "the page at the webhook", func() bool { _, pages := webhook.seen(); return len(pages) == 1 })
	_, pages := webhook.seen()
	if p := pages[0]; p.Reason != failure.PageEscalated || p.Changelist != 1 || p.ErrorClass != failure.AuthDenied || p.WorkflowID != id {
		t.Errorf("the page is %+v", p)
	}
	if n := len(in.oncallMails()); n != 2 {
		t.Errorf("%d mails to the operator on call, want 2", n)
	}
	if body := in.raw(in.oncallMails()[0].ID); strings.Contains(body, "os.Open") {
		t.Errorf("the mail quotes the change:\n%s", body)
	}
}

func (in *installation) oncallMails() []inbox.Entry {
	in.t.Helper()
	return in.searchMails("oncall@corp.test")
}
