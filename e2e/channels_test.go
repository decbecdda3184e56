package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/criticizer/criticizer/activities"
)

// A postbox is a webhook that counts what it is posted, by idempotency key.
type postbox struct {
	mu    sync.Mutex
	posts map[string]int
}

// ServeHTTP implements [http.Handler].
func (b *postbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Method == http.MethodPost {
		b.posts[r.Header.Get("Idempotency-Key")]++
	}
}

func (b *postbox) wantEachOnce(t *testing.T, reviews int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, n := range b.posts {
		if n != 1 {
			t.Errorf("message %s was posted %d times", key, n)
		}
	}
	if len(b.posts) != reviews {
		t.Errorf("the webhook has %d messages, want %d", len(b.posts), reviews)
	}
}

// openWebhook has reviews told to a webhook behind a door.
func (r *rig) openWebhook() {
	r.t.Helper()
	r.posted = &postbox{posts: map[string]int{}}
	server := httptest.NewServer(r.posted)
	r.t.Cleanup(server.Close)
	r.hookDoor = openDoor(r.t, server.Listener.Addr().String())
	r.env = append(r.env, "CRITICIZER_WEBHOOK_URL=http://"+r.hookDoor.address+"/services/of-a-test", "CRITICIZER_WEBHOOK_CLEAN=true")
}

// mailedWhileDown holds that all reviews are mailed while the webhook is down, and
// that the mails were never braked.
func (r *rig) mailedWhileDown() {
	r.t.Helper()
	waitFor(r.t, "the mails of all reviews", func() bool {
		return r.rows("jobs", "true") == r.rows("deliveries", "channel = 'mail' and status = 'sent'")
	})
	state, err := r.namespace.BrakeOf(r.t.Context(), activities.QueueNotify)
	if err != nil || state.Running || state.Limit.PerSecond != nil {
		r.t.Errorf("the mails are braked: %+v, %v", state, err)
	}
	if sent := r.rows("deliveries", "channel = 'webhook' and status = 'sent'"); sent != 0 {
		r.t.Errorf("%d reviews were told to a webhook that is down", sent)
	}
}
