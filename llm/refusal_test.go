package llm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// The class of an endpoint's refusal. No answer of an endpoint makes the class INPUT_INVALID,
// whose cause is a caller of ours. The bodies are as vendors word them, with other values.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		class  failure.Class
		shows  string
	}{
		"key, error as text":         {400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xy***. You can obtain one from the console."}`, failure.AuthDenied, "400 invalid_api_key"},
		"key, in an array":           {400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, failure.AuthDenied, "400 invalid_api_key"},
		"key, JSON in the message":   {400, `{"error":{"message":"{\n \"error\": {\"code\": 400, \"message\": \"API key expired. Please renew the API key.\"}}","code":400,"status":"Bad Request"}}`, failure.AuthDenied, "400 invalid_api_key"},
		"key, not given":             {400, `{"error":{"message":"No api key passed in.","type":"auth_error","code":"400"}}`, failure.AuthDenied, "400 invalid_api_key"},
		"key, as a code in a stream": {200, "data: {\"error\":{\"message\":\"AuthenticationError: bad key\",\"code\":\"401\"}}\n\n", failure.AuthDenied, "401"},
		"credit":                     {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API. Please go to Plans & Billing."}}`, failure.QuotaExhausted, "400 insufficient_quota"},
		"credit, forbidden":          {403, `{"error":{"message":"Your team does not have any credits yet: no credits."}}`, failure.QuotaExhausted, "403 insufficient_quota"},
		"budget":                     {400, `{"error":{"message":"Budget has been exceeded! Current cost: 11, Max budget: 10","type":"budget_exceeded","code":"400"}}`, failure.QuotaExhausted, "400 insufficient_quota"},
		"rate, in a stream":          {200, "data: {\"error\":{\"message\":\"slow down\",\"code\":\"429\"}}\n\n", failure.RateLimited, "429"},
		"location":                   {400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, failure.EndpointRefused, "400"},
		"a code of its own":          {400, `{"error":{"message":"Nope.","code":"tenant_not_enabled"}}`, failure.EndpointRefused, "400 tenant_not_enabled"},
		"text as a code":             {400, `{"error":{"message":"Nope.","code":"` + leak + ` for you"}}`, failure.EndpointRefused, "400"},
		"no reason":                  {400, ``, failure.EndpointRefused, "400"},
		"a field's validation":       {422, `{"detail":[{"loc":["body","user"],"msg":"extra fields not permitted"}]}`, failure.EndpointRefused, "422"},
		"another 4xx":                {418, `teapot`, failure.EndpointRefused, "418"},
		"the request, quoted":        {400, `{"error":{"message":"Cannot process: ` + strings.Repeat("x", 600) + ` invalid api key"}}`, failure.EndpointRefused, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, logs := newReviewer(t, respond(test.status, test.body))
			_, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", canary)), review.Options{})
			if class := failure.ClassOf(err); class != test.class || !strings.Contains(err.Error(), test.shows+":") {
				t.Errorf("got %s: %v; want %s and %q", class, err, test.class, test.shows)
			}
			mustNotShow(t, "error and log", fmt.Sprint(err)+logs.String(), leak)
		})
	}
}

// A key that the endpoint refuses with status 400 is rotated like one that it refuses with 401.
func TestOldKeyIsTriedAfterA400(t *testing.T) {
	t.Parallel()
	calls := 0
	r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls++
		if req.Header.Get("Authorization") != "Bearer before" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"Incorrect API key provided: n***w."}`)
			return
		}
		respond(http.StatusOK, chatBody(`{"message":{"content":"{\"findings\":[]}"},"finish_reason":"stop"}`)).ServeHTTP(w, req)
	}), func(c *Config) {
		c.Dialect, c.APIKey, c.APIKeyOld = "openai", secret.New("now"), secret.New("before")
	})
	if d, err := r.Review(t.Context(), redacted(t, edited), review.Options{}); err != nil || read(d) != 1 || calls != 2 {
		t.Errorf("draft %+v after %d calls, error %v", d, calls, err)
	}
}

// If the endpoint refuses the first model's request for a reason that has no class, the next
// model is asked.
func TestRefusedModelHasAFallback(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"model":"test-model"`) {
			respond(http.StatusBadRequest, `{"error":{"message":"x/test-model is not a valid model ID","code":400}}`).ServeHTTP(w, req)
			return
		}
		respond(http.StatusOK, strings.Replace(chatBody(`{"message":{"content":"{\"findings\":[]}"},"finish_reason":"stop"}`), "test-model", "second", 1)).ServeHTTP(w, req)
	}), func(c *Config) { c.Fallbacks = []string{"second"} })
	if d, err := r.Review(t.Context(), redacted(t, edited), review.Options{}); err != nil || len(d.Switches) != 1 || d.Switches[0].Why != string(failure.EndpointRefused) {
		t.Errorf("draft %+v, error %v", d, err)
	}
}
