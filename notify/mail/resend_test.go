package mail

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// A resendServer implements Resend's documented behavior: a message accepted under
// a key is not sent again. A fault occurs once, before or after acceptance.
type resendServer struct {
	mu     sync.Mutex
	bodies map[string]string // by key
	mails  []resendEmail
	fault  func(w http.ResponseWriter)
	late   bool   // the fault occurs after acceptance
	event  string // the last one of a message that is asked for
}

func (s *resendServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(status int, name string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"statusCode":%d,"name":%q,"message":"the %sto%s field and <ann@example.com>"}`, status, name, "`", "`")
	}
	body, _ := io.ReadAll(r.Body)
	fault := s.fault
	s.fault = nil
	id, asked := strings.CutPrefix(r.URL.Path, "/emails/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+testPassword:
		refuse(403, "invalid_api_key")
		return
	case r.Method == http.MethodGet && asked && s.bodies[strings.TrimPrefix(id, "id-of-")] != "":
		_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "to": s.mails[0].To, "last_event": s.event})
		return
	case r.Method != http.MethodPost || r.URL.Path != "/emails":
		refuse(404, "not_found")
		return
	case fault != nil && !s.late:
		fault(w)
		return
	}
	id, again := s.accept(r.Header.Get("Idempotency-Key"), string(body))
	switch {
	case fault != nil:
		fault(w)
	case id == "":
		refuse(422, "missing_required_field")
	case again && s.bodies[r.Header.Get("Idempotency-Key")] != string(body):
		refuse(409, "invalid_idempotent_request")
	default:
		_, _ = fmt.Fprintf(w, `{"id":%q}`, id)
	}
}

func (s *resendServer) accept(key, body string) (id string, again bool) {
	var email resendEmail
	if json.Unmarshal([]byte(body), &email) != nil || email.From == "" {
		return "", false
	}
	if _, again = s.bodies[key]; !again {
		s.bodies[key] = body
		s.mails = append(s.mails, email)
	}
	return "id-of-" + key, again
}

func (s *resendServer) inject(late bool, fault func(http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.late = fault, late
}

func answer(status int, name string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"name":%q,"message":"Invalid %sto%s field <ann@example.com>"}`, name, "`", "`")
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func serveResend(t *testing.T) (*resendServer, *ResendProvider) {
	t.Helper()
	s := &resendServer{bodies: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p, err := NewResendProvider(ResendConfig{URL: server.URL, APIKey: secret.New(testPassword), Keys: testKeys})
	testkit.NoError(t, err)
	return s, p
}

func TestResendTakesTheWholeMessage(t *testing.T) {
	t.Parallel()
	s, p := serveResend(t)
	id, err := p.Send(t.Context(), render(t, findingsReport()))
	if err != nil || id != "id-of-"+testToken {
		t.Fatalf("id %q, error %v", id, err)
	}
	m := s.mails[0]
	if m.To[0] != testKey.Recipient || !strings.Contains(m.From, "criticizer@example.com") || !strings.HasPrefix(m.Subject, "[criticizer] CL 4711: ") {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(m.Text, "The map is read after the lock was released") || !strings.Contains(m.HTML, "<html") {
		t.Error("a body is missing")
	}
	if m.Headers[headerKey] != testToken || m.Headers["References"] == "" || m.Headers["Auto-Submitted"] != "auto-generated" {
		t.Errorf("headers %v", m.Headers)
	}
}

// After any failure, sending again under the same key gives one message
// (notification 10.3).
func TestResendSendsOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault func(http.ResponseWriter)
		class failure.Class
	}{
		"no answer":       {hangUp, failure.DeliveryAmbiguous},
		"failing":         {answer(500, "application_error"), failure.DeliveryAmbiguous},
		"bad gateway":     {answer(502, ""), failure.DeliveryAmbiguous},
		"no id":           {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") }, failure.DeliveryAmbiguous},
		"not JSON":        {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, failure.DeliveryAmbiguous},
		"still processed": {answer(409, "concurrent_idempotent_requests"), failure.DeliveryAmbiguous},
		"cut off": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, `{"id":`)
		}, failure.DeliveryAmbiguous},
		"slow down": {answer(429, "rate_limit_exceeded"), failure.RateLimited},
		"redirect":  {func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(307) }, failure.ConfigInvalid},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, accepted %t", name, late), func(t *testing.T) {
				t.Parallel()
				s, p := serveResend(t)
				s.inject(late, tc.fault)
				m := render(t, findingsReport())
				_, err := p.Send(t.Context(), m)
				if failure.ClassOf(err) != tc.class || strings.Contains(fmt.Sprint(err), "@") {
					t.Fatalf("error %v, want class %s and no address", err, tc.class)
				}
				if e, err := p.Lookup(t.Context(), testKey, "", time.Now()); err != nil || e.State != review.EvidenceAbsent {
					t.Fatalf("look-up returns %+v, %v, want that it can be sent again", e, err)
				}
				id, err := p.Send(t.Context(), m)
				if err != nil || id != "id-of-"+testToken || len(s.mails) != 1 {
					t.Errorf("id %q, error %v, %d mails", id, err, len(s.mails))
				}
			})
		}
	}
}

// A message whose id is known is looked up by it (notification 6.4); a key that may only
// send cannot, so that sending again is decided by the age of the idempotency key.
func TestResendLookupByID(t *testing.T) {
	t.Parallel()
	s, p := serveResend(t)
	id, err := p.Send(t.Context(), render(t, findingsReport()))
	testkit.NoError(t, err)
	other := testKey
	other.Recipient = "eve@example.com"
	for _, tt := range []struct {
		event, id string
		key       review.DeliveryKey
		want      review.EvidenceState
		observed  bool
	}{
		{"delivered", id, testKey, review.EvidenceAccepted, false},
		{"sent", id, testKey, review.EvidenceAccepted, false},
		{"bounced", id, testKey, review.EvidenceRejected, false},
		{"delivered", id, other, review.EvidenceUnknown, false},
		{"delivered", "another", testKey, review.EvidenceAbsent, true},
	} {
		s.event = tt.event
		e, err := p.Lookup(t.Context(), tt.key, tt.id, time.Now())
		if err != nil || e.State != tt.want || e.Observed != tt.observed {
			t.Errorf("%s of %s: %+v, %v", tt.event, tt.id, e, err)
		}
	}
	p.service.Authorize = func(r *http.Request) { r.Header.Set("Authorization", "Bearer another") }
	if e, err := p.Lookup(t.Context(), testKey, "another", time.Now().Add(-24*time.Hour)); err != nil || e.State != review.EvidenceUnknown || e.Observed {
		t.Errorf("without the right to read: %+v, %v", e, err)
	}
}

func TestResendRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		name   string
		class  failure.Class
	}{
		{400, "validation_error", failure.ConfigInvalid},
		{401, "missing_api_key", failure.AuthDenied},
		{401, "restricted_api_key", failure.AuthDenied},
		{403, "invalid_api_key", failure.AuthDenied},
		{403, "validation_error", failure.ConfigInvalid}, // the domain is not verified
		{404, "not_found", failure.ConfigInvalid},
		{409, "invalid_idempotent_request", failure.DeliveryAmbiguous},
		{413, "", failure.TooLarge},
		{422, "validation_error", failure.RecipientRejected},
		{429, "daily_quota_exceeded", failure.QuotaExhausted},
		{429, "monthly_quota_exceeded", failure.QuotaExhausted},
	} {
		s, p := serveResend(t)
		s.inject(false, answer(tc.status, tc.name))
		_, err := p.Send(t.Context(), render(t, findingsReport()))
		checkError(t, err, tc.class, fmt.Sprint(tc.status))
	}
}

// A key is valid for a day. After that an operator decides.
func TestResendKeyExpires(t *testing.T) {
	t.Parallel()
	_, p := serveResend(t)
	e, err := p.Lookup(t.Context(), testKey, "", time.Now().Add(-24*time.Hour))
	if err != nil || e.State != review.EvidenceUnknown || !e.AskAgain.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = p.Lookup(t.Context(), testKey, "", time.Now().Add(-22*time.Hour)); err != nil || e.State != review.EvidenceAbsent || !e.Repeats {
		t.Errorf("after 22 hours: %+v, %v", e, err)
	}
	p.cfg.ResendInDoubt = true
	if e, err = p.Lookup(t.Context(), testKey, "", time.Now().Add(-24*time.Hour)); err != nil || e.State != review.EvidenceAbsent || e.Repeats {
		t.Errorf("with ResendInDoubt: %+v, %v", e, err)
	}
}

func TestResendPing(t *testing.T) {
	t.Parallel()
	s, p := serveResend(t)
	if err := p.Ping(t.Context()); err != nil || len(s.mails) != 0 {
		t.Errorf("error %v, %d mails", err, len(s.mails))
	}
	p.service.Authorize = func(r *http.Request) { r.Header.Set("Authorization", "Bearer another") }
	checkError(t, p.Ping(t.Context()), failure.AuthDenied, "403")
}
