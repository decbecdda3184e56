package oncall_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
)

// A receiver is a webhook's server. It answers with status and keeps the pages
// it accepted.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	requests int
	accepted []map[string]any
	keys     map[string]bool
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	d := &receiver{status: status, keys: map[string]bool{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	var page map[string]any
	if json.NewDecoder(r.Body).Decode(&page) == nil && d.status == http.StatusOK {
		d.accepted = append(d.accepted, page)
	}
	d.keys[r.Header.Get("Idempotency-Key")] = true
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(d.status)
}

func (d *receiver) answer(status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status = status
}

func (d *receiver) seen() (requests, accepted, keys int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests, len(d.accepted), len(d.keys)
}

func temporalUI(workflowID, runID string) string { return "https://ui/" + workflowID + "/" + runID }

// run runs a pager over a real outbox with one page in it, and returns whether the
// outbox has the page as sent.
func run(t *testing.T, lg *slog.Logger, channels ...oncall.Channel) (sent func() bool) {
	t.Helper()
	db := storetest.New(t).Open(t, "criticizer_bookkeeping")
	request := review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "review-p4-4711-v1"}
	now := time.Now()
	_, err := db.RecordDeadLetter(t.Context(), request, "run1", failure.DeadLetter{
		ErrorClass: failure.InvariantViolated, Stage: "llm", LastStack: "func secretSauce() {}", FirstFailureAt: now, LastFailureAt: now,
	})
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { oncall.New(lg, db, temporalUI, channels...).Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() }) // before the database goes
	return func() bool {
		page, err := db.PageOf(t.Context(), 1)
		return err == nil && page.SentAt != nil
	}
}

// The person on call is paged once, even if the webhook is down at first
// (processing 8.5). The page contains no content of the change.
func TestPageIsDeliveredOnceTheWebhookIsUp(t *testing.T) {
	t.Parallel()
	d := newReceiver(t, http.StatusBadGateway)
	sent := run(t, slog.New(slog.DiscardHandler), oncall.Webhook(secret.New(d.URL)))
	testkit.Eventually(t, "tried", func() bool { n, _, _ := d.seen(); return n >= 1 })
	d.answer(http.StatusOK)
	testkit.Eventually(t, "marked as sent, after which no pager claims it", sent)
	if _, accepted, keys := d.seen(); accepted != 1 || keys != 1 {
		t.Errorf("paged %d times with %d idempotency keys, want one of each", accepted, keys)
	}
	page := d.accepted[0]
	if page["changelist"] != 4711.0 || page["error_class"] != "INVARIANT_VIOLATED" || page["stage"] != "llm" || page["hint"] == "" || page["workflow_id"] != "review-p4-4711-v1" ||
		page["temporal_url"] != "https://ui/review-p4-4711-v1/run1" || !strings.Contains(page["runbook_url"].(string), "/docs/runbook.md#") {
		t.Errorf("the page is %v", page)
	}
	for field := range page {
		if field == "last_stack" || field == "sanitized_context" {
			t.Errorf("the page has a field %s", field)
		}
	}
}

func TestFailedChannelDoesNotRepeatTheOthers(t *testing.T) {
	t.Parallel()
	d, mails := newReceiver(t, http.StatusInternalServerError), make(chan [3]string, 10)
	byMail := oncall.Mail(func(_ context.Context, id, subject, text string) error {
		mails <- [3]string{id, subject, text}
		return nil
	})
	run(t, slog.New(slog.DiscardHandler), oncall.Webhook(secret.New(d.URL)), byMail)
	testkit.Eventually(t, "retried", func() bool { n, _, _ := d.seen(); return n >= 2 })
	d.answer(http.StatusOK)
	testkit.Eventually(t, "paged", func() bool { _, n, _ := d.seen(); return n == 1 })
	if len(mails) != 1 {
		t.Fatalf("%d mails, want 1", len(mails))
	}
	m := <-mails
	if m[0] != "criticizer-page-1" || m[1] != "[criticizer] bug: INVARIANT_VIOLATED in stage llm of CL 4711" || !strings.Contains(m[2], "criticizer deadletter show 1\n") ||
		!strings.Contains(m[2], "\nTemporal https://ui/review-p4-4711-v1/run1\n") || !strings.Contains(m[2], "\nRunbook  https://") {
		t.Errorf("the page is %q", m)
	}
}
