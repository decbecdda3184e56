package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// leak is part of the text of every error response.
const leak = "theEndpointSaidThis"

// openAIError returns an error body in the format of OpenAI.
func openAIError(kind, code string) string {
	return `{"error":{"message":"` + leak + ` about ` + canary + `","type":"` + kind + `","param":"` + leak + `","code":` + code + `}}`
}

// respond answers every request with the same response. Its lists of findings get the
// check codes of the prompt, and its usage that of the prompt.
func respond(status int, body string, header ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prompt, _ := io.ReadAll(r.Body)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		body := strings.Replace(body, `"prompt_tokens":1500`, fmt.Sprintf(`"prompt_tokens":%d`, len(prompt)/4), 1)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, `{\"findings\":[`, `{\"codes\":[`+quotedCodes(prompt)+`],\"findings\":[`))
	})
}

// quotedCodes returns the check codes of a request as elements of a JSON list in a
// JSON string.
func quotedCodes(request []byte) string {
	var codes []string
	for _, m := range regexp.MustCompile(`(?:"|\\n)check-code: ([0-9a-f]{8})`).FindAllSubmatch(request, -1) {
		codes = append(codes, `\"`+string(m[1])+`\"`)
	}
	return strings.Join(codes, ",")
}

// chatBody returns a response body with the given choice.
func chatBody(choice string) string {
	return `{"id":"c","object":"chat.completion","model":"test-model","choices":[` + choice + `],"usage":{"prompt_tokens":1500,"completion_tokens":5}}`
}

// Every error has a class (processing 8.1) and quotes neither the endpoint nor the
// change (processing 8.4).
func TestResponsesAreClassified(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status   int
		body     string
		class    failure.Class
		upstream string
	}{
		"invalid request":               {400, openAIError("invalid_request_error", "null"), failure.EndpointRefused, "400"},
		"unknown code is not repeated":  {400, openAIError("invalid_request_error", `"`+leak+`"`), failure.EndpointRefused, "400"},
		"code is a number":              {400, openAIError("BadRequestError", "400"), failure.EndpointRefused, "400"},
		"unsupported parameter":         {400, openAIError("invalid_request_error", `"unsupported_value"`), failure.ConfigInvalid, "400 unsupported_value"},
		"context length":                {400, openAIError("invalid_request_error", `"context_length_exceeded"`), failure.TooLarge, "400 context_length_exceeded"},
		"context length, type only":     {400, openAIError("exceed_context_size_error", "400"), failure.TooLarge, "400 exceed_context_size_error"},
		"context length, in words only": {400, `{"error":{"message":"This model's maximum context length is 8192","type":"BadRequestError","code":400}}`, failure.TooLarge, "400 context_length_exceeded"},
		"context length, of vLLM":       {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens."}`, failure.TooLarge, "400 context_length_exceeded"},
		"an error that is a string":     {503, `{"error":"` + leak + `"}`, failure.UpstreamUnavailable, "503"},
		"content filter of Azure":       {400, openAIError("", `"content_filter"`), failure.ContentPolicy, "400 content_filter"},
		"content policy":                {400, openAIError("invalid_request_error", `"content_policy_violation"`), failure.ContentPolicy, "400 content_policy_violation"},
		"invalid key":                   {401, openAIError("invalid_request_error", `"invalid_api_key"`), failure.AuthDenied, "401 invalid_api_key"},
		"unauthorized, not in JSON":     {401, leak, failure.AuthDenied, "401"},
		"no credit":                     {402, openAIError("unknown_error", "null"), failure.QuotaExhausted, "402"},
		"forbidden":                     {403, openAIError("invalid_request_error", "null"), failure.PermissionDenied, "403"},
		"unknown model":                 {404, openAIError("invalid_request_error", `"model_not_found"`), failure.ConfigInvalid, "404 model_not_found"},
		"unknown path":                  {404, "404 page not found " + leak, failure.NotFound, "404"},
		"wrong method":                  {405, leak, failure.ConfigInvalid, "405"},
		"request timeout":               {408, leak, failure.NetworkTimeout, "408"},
		"conflict":                      {409, openAIError("", "null"), failure.WriteConflict, "409"},
		"gone":                          {410, leak, failure.NotFound, "410"},
		"request too large":             {413, leak, failure.TooLarge, "413"},
		"unprocessable":                 {422, `{"detail":"` + leak + `"}`, failure.EndpointRefused, "422"},
		"rate limit":                    {429, openAIError("requests", `"rate_limit_exceeded"`), failure.RateLimited, "429 rate_limit_exceeded"},
		"rate limit without code":       {429, leak, failure.RateLimited, "429"},
		"quota":                         {429, openAIError("insufficient_quota", `"insufficient_quota"`), failure.QuotaExhausted, "429 insufficient_quota"},
		"quota, type only":              {429, openAIError("insufficient_quota", "null"), failure.QuotaExhausted, "429 insufficient_quota"},
		"internal error":                {500, openAIError("server_error", "null"), failure.UpstreamInternal, "500"},
		"internal error, by its code":   {500, openAIError("", `"internal_error"`), failure.UpstreamInternal, "500 internal_error"},
		"not implemented":               {501, leak, failure.UpstreamInternal, "501"},
		"bad gateway in HTML":           {502, "<html>" + leak, failure.UpstreamUnavailable, "502"},
		"unavailable":                   {503, "", failure.UpstreamUnavailable, "503"},
		"overloaded, as server_error":   {503, openAIError("server_error", "null"), failure.UpstreamUnavailable, "503"},
		"gateway timeout":               {504, "<html>" + leak, failure.UpstreamUnavailable, "504"},
		"origin timed out":              {524, "<html>" + leak, failure.UpstreamUnavailable, "524"},
		"overloaded":                    {529, openAIError("overloaded_error", "null"), failure.UpstreamUnavailable, "529 overloaded_error"},
		"overloaded, not in JSON":       {529, leak, failure.UpstreamUnavailable, "529"},
		"rate limit of Google":          {429, `{"error":{"code":429,"message":"` + leak + `","status":"RESOURCE_EXHAUSTED"}}`, failure.RateLimited, "429"},
		"HTML instead of a completion":  {200, "<html>" + leak, failure.SchemaInvalid, ""},
		"half a completion":             {200, chatBody(`{}`)[:40], failure.SchemaInvalid, ""},
		"nothing instead of one":        {200, "", failure.SchemaInvalid, ""},
		"no choice":                     {200, chatBody(""), failure.SchemaInvalid, ""},
		"no content":                    {200, chatBody(`{"message":{"content":null},"finish_reason":"stop"}`), failure.SchemaInvalid, ""},
		"prose":                         {200, chatBody(`{"message":{"content":"` + leak + `"},"finish_reason":"stop"}`), failure.SchemaInvalid, ""},
		"refusal":                       {200, chatBody(`{"message":{"content":null,"refusal":"` + leak + `"},"finish_reason":"stop"}`), failure.ContentPolicy, ""},
		"content filter":                {200, chatBody(`{"message":{"content":"` + leak + `"},"finish_reason":"content_filter"}`), failure.ContentPolicy, ""},
		"cut off JSON":                  {200, chatBody(`{"message":{"content":"{\"findings\":[{\"path\""},"finish_reason":"stop"}`), failure.SchemaInvalid, ""},
		"cut off":                       {200, chatBody(`{"message":{"content":"` + leak + `"},"finish_reason":"length"}`), failure.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, logs := newReviewer(t, respond(test.status, test.body, "X-Request-Id", "req_42"))
			d, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", canary)), review.Options{})
			if len(d.Findings) != 0 || read(d) != 0 {
				t.Errorf("a failed call returned the draft %+v", d)
			}
			e, ok := errors.AsType[*failure.Error](err)
			if !ok {
				t.Fatalf("got %v, want a classified error", err)
			}
			if e.Class != test.class || e.Upstream != test.upstream || e.RequestID != "req_42" {
				t.Errorf("got %s, upstream %q, request %q; want %s, %q, req_42", e.Class, e.Upstream, e.RequestID, test.class, test.upstream)
			}
			mustNotShow(t, "error", err.Error()+e.Upstream, leak)
			mustNotShow(t, "log", logs.String(), leak)
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	r, _ := newReviewer(t, respond(429, openAIError("requests", `"rate_limit_exceeded"`), "Retry-After", "20"))
	_, err := r.Review(t.Context(), redacted(t, added("//depot/a.go", "x")), review.Options{})
	if e, ok := errors.AsType[*failure.Error](err); !ok || e.RetryAfter != 20*time.Second {
		t.Errorf("got %v, want it to be retried after 20 s", err)
	}
}

func TestRequestIDHasAForm(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"req_0123abc":              "req_0123abc",
		"a b":                      "",
		strings.Repeat("x", 101):   "",
		"<script>":                 "",
		"550e8400-e29b-41d4-a716-": "550e8400-e29b-41d4-a716-",
	} {
		if got := requestID(http.Header{"X-Request-Id": {id}}); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}
