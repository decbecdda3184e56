package endpoint

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// TestRecordedErrors classifies errors of real servers as their users published them, some
// with their text only; each has its source. limit is the answer limit that is asked for next,
// without the field that is left out, and wait the delay in seconds, if the error asks for that.
func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	data, err := os.Open("testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.Close() }()
	n := 0
	for lines := bufio.NewScanner(data); lines.Scan(); n++ {
		var rec struct {
			Who, Source, Without string
			Status, Limit, Wait  int
			Class                failure.Class
			Body                 json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
		err := classify(rec.Status, rec.Body, nil)
		if got := failure.ClassOf(err); got != rec.Class && !(got == failure.NotFound && rec.Class == failure.ConfigInvalid && rec.Status == http.StatusNotFound) {
			t.Errorf("%s: got %s: %v, want %s\n%s", rec.Who, got, err, rec.Class, rec.Body)
		}
		r := Request{MaxTokens: 16_384, Tokens: 8_000, Format: FormatSchema, Fields: map[string]any{"temperature": 0.1, "reasoning_effort": "low"}}
		next, limit, again := habits{}.after(err, r)
		if rec.Limit > 0 && (!again || limit != rec.Limit) {
			t.Errorf("%s: asked again: %t, with the limit %d, want %d", rec.Who, again, limit, rec.Limit)
		}
		e, _ := errors.AsType[Error](err)
		if rec.Without != "" && (!again || e.said.parameter() != rec.Without || next == habits{}) {
			t.Errorf("%s: asked again: %t, without %q, want %q", rec.Who, again, e.said.parameter(), rec.Without)
		}
		if f, ok := errors.AsType[*failure.Error](err); rec.Wait > 0 && (!ok || f.RetryAfter != time.Duration(rec.Wait)*time.Second) {
			t.Errorf("%s: the delay is not %d s: %+v", rec.Who, rec.Wait, f)
		}
		if rec.Class != failure.TooLarge && rec.Limit == 0 && rec.Without == "" && again {
			t.Errorf("%s: asked again with %+v and the limit %d", rec.Who, next, limit)
		}
	}
	if n < 80 {
		t.Errorf("only %d errors were read", n)
	}
}

func TestContextIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"This model's maximum context length is 4097 tokens. However, you requested 4120 tokens":                              4_097,
		"`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 15800 `inputs` tokens":                                    8_192,
		"the input token count is 32825 but model only supports up to 32768.":                                                 32_768,
		"prompt is too long: 210,000 tokens > 200,000 maximum":                                                                200_000,
		"prompt token count of 70123 exceeds the limit of 64000":                                                              64_000,
		"Range of input length should be [1, 30720]":                                                                          30_720,
		"Context size has been exceeded.":                                                                                     0,
		"Request too large on tokens per min (TPM): Limit 30000, Requested 40384. The input or output tokens must be reduced": 30_000,
	} {
		if got := read([]byte(text)).context(); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header, value, text string
		want                time.Duration
	}{
		"seconds":           {"Retry-After", "20", "", 20 * time.Second},
		"milliseconds":      {"Retry-After-Ms", "1500", "", 1500 * time.Millisecond},
		"a duration":        {"X-Ratelimit-Reset-Requests", "2m1s", "", 121 * time.Second},
		"seconds to go":     {"X-Ratelimit-Reset", "30", "", 30 * time.Second},
		"another name":      {"X-Ratelimit-Reset-After", "7.5", "", 7500 * time.Millisecond},
		"of Mistral":        {"Ratelimitbysize-Reset", "38", "", 38 * time.Second},
		"without an X":      {"Ratelimit-Reset", "12", "", 12 * time.Second},
		"of Cerebras":       {"X-Ratelimit-Reset-Tokens-Minute", "12.5", "", 12500 * time.Millisecond},
		"of Hugging Face":   {"Ratelimit", `"api";r=0;t=30`, "", 30 * time.Second},
		"of a limit left":   {"Ratelimit", `"api";r=7;t=30`, "", 0},
		"a time of day":     {"Anthropic-Ratelimit-Requests-Reset", "2030-01-01T00:00:00Z", "", failure.DelayCeiling},
		"a time":            {"X-Ratelimit-Reset", "1893456000", "", failure.DelayCeiling},
		"a time in ms":      {"X-Ratelimit-Reset", "1893456000000", "", failure.DelayCeiling},
		"a time that is up": {"X-Ratelimit-Reset", "1700000000", "", 0},
		"in words":          {"", "", "please try again in 4.5s.", 4500 * time.Millisecond},
		"minutes, in words": {"", "", "please try again in 2m3s", 123 * time.Second},
		"whole minutes":     {"", "", "retry after 2 minutes", 2 * time.Minute},
		"a short minute":    {"", "", "please wait 1m before", time.Minute},
		"too long":          {"Retry-After", "86400", "", failure.DelayCeiling},
		"nothing":           {"", "", "slow down", 0},
	} {
		h := http.Header{}
		h.Set(test.header, test.value)
		if got := retryAfter(http.StatusTooManyRequests, h, test.text); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// Headers about limits are in every answer of some servers: they count if the limit is reached.
func TestResetOfALimit(t *testing.T) {
	t.Parallel()
	requests := map[string]string{"Remaining-Requests": "0", "Reset-Requests": "20s", "Remaining-Tokens": "9", "Reset-Tokens": "1s"}
	tokens := map[string]string{"Remaining-Requests": "9", "Reset-Requests": "2m", "Remaining-Tokens": "0", "Reset-Tokens": "6s"}
	for name, test := range map[string]struct {
		status int
		text   string
		header map[string]string
		want   time.Duration
	}{
		"another error":         {500, "", requests, 0},
		"requests are used up":  {429, "", requests, 20 * time.Second},
		"tokens are used up":    {429, "", tokens, 6 * time.Second},
		"another limit remains": {429, "", map[string]string{"Remaining": "5", "Reset": "60"}, 0},
		"words come first":      {429, "please try again in 3s", requests, 3 * time.Second},
	} {
		h := http.Header{}
		for key, value := range test.header {
			h.Set("X-Ratelimit-"+key, value)
		}
		if got := retryAfter(test.status, h, test.text); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
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
	if got := requestID(http.Header{"Apim-Request-Id": {"abc"}}); got != "abc" {
		t.Errorf("of Azure: got %q", got)
	}
}

// The answer limit shrinks to what the prompt leaves of the context, by the endpoint's own count
// if it is one.
func TestAnswerFitsTheContext(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"This model's maximum context length is 20000 tokens. However, you requested 24384 tokens (8000 in the messages, 16384 in the completion).":               12_000,
		"'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 20000 tokens and your request has 9000 input tokens": 11_000,
		"This model's maximum context length is 20000 tokens. However, you requested 16384 output tokens and your prompt contains at least 3617 input tokens":     8_000,
		"This model's maximum context length is 9000 tokens. However, you requested 24384 tokens (8700 in the messages, 16384 in the completion).":                0,
		"Request too large for m on tokens per min (TPM): Limit 20000, Requested 24384. The input or output tokens must be reduced":                               8_000,
	} {
		err := classify(http.StatusBadRequest, []byte(text), nil)
		_, limit, again := habits{}.after(err, Request{MaxTokens: 16_384, Tokens: 8_000})
		if again != (want > 0) || again && limit != want {
			t.Errorf("%s: asked again: %t, with the limit %d, want %d", text, again, limit, want)
		}
	}
}
