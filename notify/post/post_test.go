package post

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// secretPath is in every URL and in every answer of these tests.
const secretPath = "T0KEN-in-the-path"

var testService = Service{Name: "test service", Denied: "renew it", Invalid: "check it"}

func serve(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/" + secretPath
}

// send makes a request that delivers, or one that only asks.
func send(t *testing.T, s Service, url string, delivers bool) (Answer, error) {
	t.Helper()
	r, err := JSON(url, "key", map[string]int{"a": 1})
	testkit.NoError(t, err)
	r.Delivers = delivers
	return s.Send(t.Context(), r)
}

// checkError fails if err has another class, or contains a secret, and returns it.
func checkError(t *testing.T, err error, class failure.Class) *failure.Error {
	t.Helper()
	if failure.ClassOf(err) != class {
		t.Fatalf("error %v has class %s, want %s", err, failure.ClassOf(err), class)
	}
	for _, private := range []string{secretPath, "127.0.0.1", "http:"} {
		if strings.Contains(err.Error(), private) {
			t.Errorf("the error contains %q: %v", private, err)
		}
	}
	e, _ := errors.AsType[*failure.Error](err)
	return e
}

func TestStatusDecidesTheClass(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][2]failure.Class{ // of a request that delivers, and of one that does not
		307: {failure.ConfigInvalid, failure.ConfigInvalid},
		400: {failure.ConfigInvalid, failure.ConfigInvalid},
		401: {failure.AuthDenied, failure.AuthDenied},
		403: {failure.AuthDenied, failure.AuthDenied},
		404: {failure.ConfigInvalid, failure.ConfigInvalid},
		413: {failure.TooLarge, failure.TooLarge},
		429: {failure.RateLimited, failure.RateLimited},
		500: {failure.UpstreamInternal, failure.UpstreamInternal},
		502: {failure.UpstreamInternal, failure.UpstreamInternal},
		503: {failure.ServerBusy, failure.ServerBusy},
	} {
		requests := 0
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("X-Request-Id", "r-1")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(secretPath))
		})
		for i, class := range want {
			_, err := send(t, testService, url, i == 0)
			if e := checkError(t, err, class); e.RetryAfter != 7*time.Second || e.RequestID != "r-1" || e.Upstream != strconv.Itoa(status) {
				t.Errorf("%d: %+v", status, e)
			}
		}
		if requests != len(want) {
			t.Errorf("%d: %d requests, want %d: no redirect is followed and nothing repeated", status, requests, len(want))
		}
	}
}

// Some services refuse a message with status 200.
func TestTextThatRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]failure.Class{
		"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413 with ContextId MS-CV=x..": failure.TooLarge,
		"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=1":    failure.RateLimited,
		"Webhook message delivery failed with error: Error contacting Microsoft Teams endpoint":                                 failure.UpstreamInternal,
		`{"ok":false,"error":"invalid_auth"}`:         failure.ConfigInvalid,
		`{"success":false,"error":"invalid-channel"}`: failure.ConfigInvalid,
		`{"success":true}`:                            failure.Unknown,
		`{"ok":true,"error":null}`:                    failure.Unknown,
		"1":                                           failure.Unknown,
		"ok":                                          failure.Unknown,
		"":                                            failure.Unknown,
		`{"name":"spaces/a/messages/b","text":"findings: 2"}`: failure.Unknown,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
		if _, err := send(t, testService, url, true); failure.ClassOf(err) != want {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := send(t, testService, url, false); err != nil {
			t.Errorf("a query is answered with %s: %v", text, err)
		}
	}
}

// A message is in doubt once a part of the request was sent, and not before.
func TestMissingAnswer(t *testing.T) {
	t.Parallel()
	broken := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := send(t, testService, broken, true)
	_ = checkError(t, err, failure.DeliveryAmbiguous)
	_, err = send(t, testService, broken, false)
	_ = checkError(t, err, failure.NetworkUnreachable)
	for _, delivers := range []bool{true, false} {
		_, err = send(t, testService, "http://127.0.0.1:1/"+secretPath, delivers)
		_ = checkError(t, err, failure.NetworkUnreachable)
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is not trusted
	t.Cleanup(tls.Close)
	_, err = send(t, testService, tls.URL, true)
	_ = checkError(t, err, failure.NetworkUnreachable)
}

// The host of a URL may be the secret.
func TestErrorsDoNotNameTheHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for name, url := range map[string]string{"unknown": "https://t0ken.invalid/", "another certificate": "https://localhost:" + port + "/"} {
		_, err := send(t, testService, url, true)
		if text := err.Error(); strings.Contains(text, "t0ken") || strings.Contains(text, "localhost") {
			t.Errorf("%s: the error names the host: %v", name, err)
		}
	}
}

func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	t.Parallel()
	reached := false
	url := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := testService.Send(ctx, Request{Method: http.MethodPost, URL: url, Delivers: true})
	_ = checkError(t, err, failure.NetworkTimeout)
	if reached {
		t.Error("the request was sent")
	}
}

// net/http repeats a request with an idempotency key on a reused connection.
func TestEveryRequestHasItsOwnConnection(t *testing.T) {
	t.Parallel()
	clients := map[string]bool{}
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { clients[r.RemoteAddr] = true })
	for range 3 {
		if _, err := send(t, testService, url, true); err != nil {
			t.Fatal(err)
		}
	}
	if len(clients) != 3 {
		t.Errorf("%d connections, want 3", len(clients))
	}
}

func TestRequestAndAnswer(t *testing.T) {
	t.Parallel()
	s := testService
	s.Authorize = func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]int
		if json.NewDecoder(r.Body).Decode(&body) != nil || body["a"] != 1 || r.Header.Get("Idempotency-Key") != "key" ||
			r.Header.Get("Authorization") != "Bearer x" || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			t.Errorf("request %v with headers %v", body, r.Header)
		}
		_, _ = w.Write([]byte(`{"id":5}`))
	})
	a, err := send(t, s, url, true)
	testkit.NoError(t, err)
	var answer struct{ ID int }
	if err := s.Decode(a, &answer); err != nil || answer.ID != 5 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// An accepted message with an unreadable answer is in doubt only for a caller
// that needs the answer.
func TestUnreadableAnswer(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte(`{}`))
		},
	} {
		for delivers, class := range map[bool]failure.Class{true: failure.DeliveryAmbiguous, false: failure.UpstreamInternal} {
			a, err := send(t, testService, serve(t, handler), delivers)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_ = checkError(t, testService.Decode(a, &struct{}{}), class)
		}
	}
}

// Only a clean review by a model reads as clean.
func TestOutcome(t *testing.T) {
	t.Parallel()
	lines := review.Coverage{{Path: "//depot/a.go", Lines: []review.Lines{{First: 1, Last: 2, State: review.LinesShown}}}}
	for _, outcome := range []review.Outcome{review.OutcomeClean, review.OutcomeFindings, review.OutcomePartial, review.OutcomeNotReviewed, ""} {
		for _, r := range []review.Report{
			{Outcome: outcome}, {Outcome: outcome, Coverage: lines}, {Outcome: outcome, Findings: []review.Finding{{}}}, {Outcome: outcome, Record: review.Record{StandIn: true}},
		} {
			got := Outcome(r)
			if isClean := got == "No findings" || got == "Nothing to review"; isClean != (outcome == review.OutcomeClean && !r.StandIn) {
				t.Errorf("%q with %d findings reads %q", outcome, len(r.Findings), got)
			}
		}
	}
}
