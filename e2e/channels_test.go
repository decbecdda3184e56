package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// A webhookServer counts posts by idempotency key.
type webhookServer struct {
	status int // of replies to posts; 0 is 200
	mu     sync.Mutex
	posts  map[string]int
}

// ServeHTTP implements [http.Handler].
func (b *webhookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status > http.StatusOK && r.Method == http.MethodPost { // a HEAD proves nothing
		w.WriteHeader(b.status)
	} else if r.Method == http.MethodPost {
		b.posts[r.Header.Get("Idempotency-Key")]++
	}
}

// setStatus sets the status of the replies to posts.
func (b *webhookServer) setStatus(code int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = code
}

func (b *webhookServer) wantEachOnce(t *testing.T, reviews int) {
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

// configureWebhook posts reviews to a webhook behind an outageProxy.
func (in *installation) configureWebhook() {
	in.t.Helper()
	in.webhook = &webhookServer{posts: map[string]int{}}
	server := httptest.NewServer(in.webhook)
	in.t.Cleanup(server.Close)
	in.webhookProxy = newOutageProxy(in.t, server.Listener.Addr().String())
	in.env = append(in.env, "CRITICIZER_WEBHOOK_URL=http://"+in.webhookProxy.address+"/services/of-a-test", "CRITICIZER_WEBHOOK_SEVERITY=clean")
}

// checkMailedWhileDown checks that an unreachable webhook neither delays mails nor opens
// their circuit breaker.
func (in *installation) checkMailedWhileDown() {
	in.t.Helper()
	waitFor(in.t, "the mails of all reviews", func() bool {
		return in.countRows("jobs", "true") == in.countRows("deliveries", "channel = 'mail' and status = 'sent'")
	})
	if in.breakerOpen("notify") {
		in.t.Error("the breaker of mails is open")
	}
	if sent := in.countRows("deliveries", "channel = 'webhook' and status = 'sent'"); sent != 0 {
		in.t.Errorf("%d posts are sent to an unreachable webhook", sent)
	}
}

// A channelServer is both a webhook and a P4 Code Review server. It accepts posts and
// kills the sender before its reply to the last post of a message.
type channelServer struct {
	posts      int // of a message
	mu         sync.Mutex
	bodies     []string
	once       sync.Once
	deadLetter func()
}

// ServeHTTP implements [http.Handler].
func (s *channelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		id := s.take(r)
		if id == s.posts {
			s.once.Do(s.deadLetter)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"comment": map[string]int{"id": id}})
	case strings.HasSuffix(r.URL.Path, "/reviews"):
		_ = json.NewEncoder(w).Encode(map[string]any{"reviews": []any{}})
	case strings.HasSuffix(r.URL.Path, "/comments"):
		_ = json.NewEncoder(w).Encode(map[string]any{"comments": s.comments(r.URL.Query().Get("after")), "lastSeen": 1})
	}
}

func (s *channelServer) take(r *http.Request) (id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = r.ParseForm()
	s.bodies = append(s.bodies, r.PostForm.Get("body"))
	return len(s.bodies)
}

func (s *channelServer) comments(after string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []map[string]any{}
	for i, body := range s.bodies {
		if after == "" {
			found = append(found, map[string]any{"id": i + 1, "user": "bot", "body": body})
		}
	}
	return found
}

// A worker dies after a channel accepted the message and before the reply. The next
// worker posts no duplicate: it queries P4 Code Review, and holds the message for an
// operator where the channel, a webhook, cannot be queried. No mail is repeated.
func TestWorkerDiesDuringChannelPost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env        func(url string) []string
		posts      int
		status     string
		deadLetter int
	}{
		"webhook": {
			func(url string) []string { return []string{"CRITICIZER_WEBHOOK_URL=" + url} },
			1, "held", 1,
		},
		"swarm": {
			func(url string) []string {
				return []string{"CRITICIZER_SWARM_URL=" + url, "CRITICIZER_SWARM_USER=bot", "CRITICIZER_SWARM_TICKET=of a test"}
			},
			2, "sent", 0, // a comment on the line and the summary
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
			var worker *os.Process
			server := &channelServer{posts: tt.posts, deadLetter: func() {
				_ = worker.Kill()
				_, _ = worker.Wait()
			}}
			at := httptest.NewServer(server)
			t.Cleanup(at.Close)
			in.env = append(in.env, tt.env(at.URL)...)
			worker = in.startWorker().Process
			in.mustStart("1")
			waitFor(t, "the message", func() bool { return len(server.comments("")) == tt.posts })
			in.startWorker()
			waitFor(t, "the end of the review", func() bool { return in.countRows("jobs", "finished_at is not null") == 1 })
			if n := len(server.comments("")); n != tt.posts || in.countRows("deliveries", "channel <> 'mail' and status = '"+tt.status+"'") != 1 {
				t.Errorf("%d posts, want %d and its row %s", n, tt.posts, tt.status)
			}
			if letters, mails := in.countRows("dead_letters", "true"), len(in.mails(1)); letters != tt.deadLetter || mails != 1 {
				t.Errorf("%d dead letters, %d mails", letters, mails)
			}
		})
	}
}

// A receiver that honors the idempotency key is posted to again after a server error, until
// the attempts are spent, and by a replay (processing 8.1).
func TestWebhookWithIdempotencyKeyIsRetried(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	var posts atomic.Int32
	var keys sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys.Store(r.Header.Get("Idempotency-Key"), true)
		if posts.Add(1) <= failure.AttemptBudget {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	in.env = append(in.env, "CRITICIZER_WEBHOOK_URL="+server.URL)
	in.startWorker()
	id := in.deadLetter("1", failure.UpstreamInternal)
	letter := in.waitForEnd(id)
	if letter.Attempts != failure.AttemptBudget || letter.SanitizedContext["upstream"] != "502" || posts.Load() != failure.AttemptBudget {
		t.Errorf("%d posts, dead letter %+v", posts.Load(), letter)
	}
	in.criticizer("deadletter", "replay", "1", "--reason", "INC-7: the receiver is back")
	waitFor(t, "the end of the replay", func() bool { return in.countRows("jobs", "state = 'succeeded'") == 1 })
	sent := 0
	keys.Range(func(any, any) bool { sent++; return true })
	if sent != 1 || posts.Load() != failure.AttemptBudget+1 || len(in.mails(1)) != 1 {
		t.Errorf("%d posts under %d keys, %d mails; want one message and one mail", posts.Load(), sent, len(in.mails(1)))
	}
}
