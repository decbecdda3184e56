package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// pager is a webhook that is down until it is told to be up.
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

// Criticizer-processing 8.5: a replay that fails again for the same reason is
// escalated, and somebody is called, by every channel, once. That the webhook is
// down delays neither the dead letter nor the mail. A refused key calls somebody the
// first time too; when the webhook is up, that is settled.
func TestEscalationCallsSomebody(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	webhook := &oncallWebhook{}
	server := httptest.NewServer(webhook)
	t.Cleanup(server.Close)
	in.disableBreaker()
	in.env = append(in.env, "CRITICIZER_ONCALL_WEBHOOK_URL="+server.URL, "CRITICIZER_ONCALL_ADDRESS=oncall@corp.test")
	in.startWorker()
	if err := in.model.Inject(llmsim.Fault{Kind: llmsim.InvalidKey, Times: 2}); err != nil {
		t.Fatal(err)
	}
	id := in.deadLetter("1", failure.AuthDenied)
	waitFor(t, "the mail about the key", func() bool { return len(in.oncallMails()) == 1 })
	if body := in.raw(in.oncallMails()[0].ID); !strings.Contains(body, "denied: AUTH_DENIED in stage llm") {
		t.Errorf("the first mail says\n%s", body)
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
		t.Errorf("the page says %+v", p)
	}
	if n := len(in.oncallMails()); n != 2 {
		t.Errorf("%d mails to the person on call, want 2", n)
	}
	if body := in.raw(in.oncallMails()[0].ID); !strings.Contains(body, "criticizer deadletter show") || strings.Contains(body, "os.Open") {
		t.Errorf("the mail says\n%s", body)
	}
}

// callsOut are the mails to the person on call.
func (in *installation) oncallMails() []inbox.Entry {
	in.t.Helper()
	var page struct {
		Messages []inbox.Entry `json:"messages"`
	}
	in.getJSON("/api/messages?q="+url.QueryEscape("oncall@corp.test"), &page)
	return page.Messages
}
