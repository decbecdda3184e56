package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
)

// A streamed answer without a finish reason is used if it is complete, and broken off if not.
func TestStreamWithoutAReason(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]failure.Class{`{\"rewrite\":\"Good.\"}`: "", `{\"rewrite\":\"Go`: failure.NetworkUnreachable} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":"%s"}}]}`+"\n\ndata: [DONE]\n\n", content)
		}))
		a, err := r.Rewrite(t.Context(), to(rewrite.OpenAIChat), complaint(t, "job-1"))
		if failure.ClassOf(err) != want && (err != nil || want != "") || (a == "Good.") != (want == "") {
			t.Errorf("%s: got %q, error %v, want %q", content, a, err, want)
		}
	}
}

// Lines of result files as servers write them. A part of another type or shape costs its own
// meaning and no other: the ID, the answer and the status are read without it.
func TestForeignLines(t *testing.T) {
	t.Parallel()
	const chat = `"choices":[{"index":0,"message":{"content":"{\"rewrite\":\"Good.\"}"},"finish_reason":"stop"}]`
	for name, tt := range map[string]struct {
		line string
		want failure.Class // empty: an answer
	}{
		"as documented":              {`{"custom_id":"j","response":{"status_code":200,"body":{` + chat + `,"usage":{"prompt_tokens":1}}},"error":null}`, ""},
		"usage is a list":            {`{"custom_id":"j","response":{"status_code":200,"body":{` + chat + `,"usage":[1]}}}`, ""},
		"usage in fractions":         {`{"custom_id":"j","response":{"status_code":200,"body":{` + chat + `,"usage":{"prompt_tokens":1.5}}}}`, ""},
		"created is a text":          {`{"custom_id":"j","response":{"status_code":200,"body":{` + chat + `,"created":"today"}}}`, ""},
		"status is a text":           {`{"custom_id":"j","response":{"status_code":"200","body":{` + chat + `}}}`, ""},
		"error is an empty text":     {`{"custom_id":"j","response":{"status_code":200,"body":{` + chat + `}},"error":""}`, ""},
		"body is a text":             {`{"custom_id":"j","response":{"status_code":200,"body":"{\"choices\":[{\"message\":{\"content\":\"{\\\"rewrite\\\":\\\"Good.\\\"}\"}}]}"}}`, ""},
		"content is a list of parts": {`{"custom_id":"j","response":{"status_code":200,"body":{"choices":[{"message":{"content":[{"type":"text","text":"{\"rewrite\":\"Good.\"}"}]}}]}}}`, ""},
		"content is null, a refusal": {`{"custom_id":"j","response":{"status_code":200,"body":{"choices":[{"message":{"content":null,"refusal":"no"}}]}}}`, failure.ContentPolicy},
		"choices is an object":       {`{"custom_id":"j","response":{"status_code":200,"body":{"choices":{}}}}`, failure.UpstreamInternal},
		"an error with status 200":   {`{"custom_id":"j","response":{"status_code":200,"body":{"error":{"code":429,"message":"slow down"}}}}`, failure.RateLimited},
		"no credit, status 200":      {`{"custom_id":"j","response":{"status_code":200,"body":{"error":{"code":"insufficient_quota"}}}}`, failure.QuotaExhausted},
		"an error in words":          {`{"custom_id":"j","response":{"status_code":200,"body":{"choices":null,"error":"Rate limit exceeded"}}}`, failure.RateLimited},
		"status 200 without a body":  {`{"custom_id":"j","response":{"status_code":200,"body":null},"error":{"code":"insufficient_quota"}}`, failure.QuotaExhausted},
		"not executed, no credit":    {`{"custom_id":"j","response":null,"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, failure.QuotaExhausted},
		"not executed, in words":     {`{"custom_id":"j","response":null,"error":"Incorrect API key provided"}`, failure.AuthDenied},
		"error is a text":            {`{"custom_id":"j","response":{"status_code":400,"body":null},"error":"This model's maximum context length is 8 tokens"}`, failure.TooLarge},
		"code is a number":           {`{"custom_id":"j","response":{"status_code":400,"body":null},"error":{"message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}}`, failure.TooLarge},
		"error in a body as a text":  {`{"custom_id":"j","response":{"status_code":429,"body":{"error":"slow down"}}}`, failure.RateLimited},
		"filtered":                   {`{"custom_id":"j","response":{"status_code":400,"body":{"error":{"code":"content_filter","innererror":{"code":"x"},"param":7}}}}`, failure.ContentPolicy},
		"not executed, with a text":  {`{"custom_id":"j","response":null,"error":"expired"}`, failure.UpstreamInternal},
		"expired":                    {`{"custom_id":"j","response":"","error":{"code":"batch_expired","message":[]}}`, failure.UpstreamUnavailable},
		"no status":                  {`{"custom_id":"j","response":{"body":{` + chat + `}}}`, ""},
		"no status, an error":        {`{"custom_id":"j","response":{"body":{"error":{"code":"insufficient_quota"}}}}`, failure.QuotaExhausted},
		"the ID and nothing else":    {`{"custom_id":"j","response":7,"error":[]}`, failure.UpstreamInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, tt.line) }))
			var lines []rewrite.Line
			testkit.NoError(t, r.Results(t.Context(), to(rewrite.OpenAIChat), "f", func(l rewrite.Line) error {
				lines = append(lines, l)
				return nil
			}))
			if len(lines) != 1 || lines[0].JobID != "j" {
				t.Fatalf("lines are %+v", lines)
			}
			if tt.want == "" && (lines[0].Err != nil || lines[0].Answer != "Good.") || tt.want != "" && failure.ClassOf(lines[0].Err) != tt.want {
				t.Errorf("got %q, %v; want class %q", lines[0].Answer, lines[0].Err, tt.want)
			}
		})
	}
}

// A response of the Responses API with an error, as an object or in words.
func TestForeignResponses(t *testing.T) {
	t.Parallel()
	for problem, want := range map[string]failure.Class{
		`{"code":"insufficient_quota"}`:                   failure.QuotaExhausted,
		`{"code":"rate_limit_exceeded","message":"slow"}`: failure.RateLimited,
		`{"code":"invalid_prompt","message":"no"}`:        failure.EndpointRefused,
		`{"code":"server_error","message":"oops"}`:        failure.UpstreamInternal,
		`"Rate limit exceeded"`:                           failure.RateLimited,
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"custom_id":"j","response":{"status_code":200,"body":{"status":"failed","output":[],"error":%s}}}`, problem)
		}))
		testkit.NoError(t, r.Results(t.Context(), to(rewrite.OpenAIResponses), "f", func(l rewrite.Line) error {
			if failure.ClassOf(l.Err) != want {
				t.Errorf("%s: got %v, want class %s", problem, l.Err, want)
			}
			return nil
		}))
	}
}

// A creation that is refused for its tokens has no room: it has no lines.
func TestCreationWithoutRoom(t *testing.T) {
	t.Parallel()
	for body, test := range map[string]struct {
		status int
		noRoom bool
		class  failure.Class
	}{
		`{"error":{"code":"token_limit_exceeded","message":"Enqueued token limit reached for m"}}`:     {400, true, failure.RateLimited},
		`{"error":{"code":"token_limit_exceeded"}}`:                                                    {400, true, failure.RateLimited},
		`{"error":{"code":null,"message":"Enqueued token limit reached for m. Limit: 90,000 tokens"}}`: {400, true, failure.RateLimited},
		`{"error":{"message":"Too many enqueued requests"}}`:                                           {429, true, failure.RateLimited},
		`{"error":{"code":"enqueued_token_limit"}}`:                                                    {400, true, failure.RateLimited},
		`{"error":{"message":"The file is too large"}}`:                                                {413, false, failure.TooLarge},
		`{"error":{"message":"The file is not processed"}}`:                                            {400, false, failure.EndpointRefused},
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, body)
		}))
		_, err := r.Create(t.Context(), to(rewrite.OpenAIChat), "file", "key")
		if failure.ClassOf(err) != test.class || errors.Is(err, rewrite.ErrNoRoom) != test.noRoom {
			t.Errorf("%s: got %s: %v", body, failure.ClassOf(err), err)
		}
	}
}

// A batch as servers describe it.
func TestForeignBatches(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		batch string
		want  rewrite.ProviderBatch
	}{
		"errors is a list":             {`"status":"failed","errors":[{"code":"token_limit_exceeded","line":null}]`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, Full: true}},
		"line is a text":               {`"status":"failed","errors":{"data":[{"code":"invalid_json_line","line":"2"}]}`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, FaultyLines: []int{2}}},
		"an odd problem beside others": {`"status":"failed","errors":{"data":[7,{"code":"model_not_found","line":1}]}`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, Refused: true}},
		"a limit without a known code": {`"status":"failed","errors":{"data":[{"code":"enqueued_request_limit_exceeded"}]}`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, Full: true}},
		"created in fractions":         {`"status":"completed","created_at":1774437191.5,"output_file_id":"o"`, rewrite.ProviderBatch{Status: rewrite.BatchCompleted, CreatedAt: time.Unix(1774437191, 0).UTC(), OutputFileID: "o"}},
		"created as a text":            {`"status":"completed","created_at":"2026-03-25T11:13:11Z"`, rewrite.ProviderBatch{Status: rewrite.BatchCompleted, CreatedAt: time.Date(2026, 3, 25, 11, 13, 11, 0, time.UTC)}},
		"errors are a text":            {`"status":"failed","errors":"Enqueued token limit reached for m"`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, Full: true}},
		"a reason in words":            {`"status":"failed","errors":{"data":[{"code":null,"message":"Incorrect API key provided"}]}`, rewrite.ProviderBatch{Status: rewrite.BatchFailed, Refused: true}},
		"status in capitals":           {`"status":"COMPLETED"`, rewrite.ProviderBatch{Status: rewrite.BatchCompleted}},
		"status of others":             {`"status":"succeeded"`, rewrite.ProviderBatch{Status: rewrite.BatchCompleted}},
		"canceled with one l":          {`"status":"canceled"`, rewrite.ProviderBatch{Status: rewrite.BatchCancelled}},
		"counts are texts":             {`"status":"completed","request_counts":{"completed":"3","failed":[]},"output_file_id":{}`, rewrite.ProviderBatch{Status: rewrite.BatchCompleted, Lines: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"id":"b",%s}`, tt.batch) }))
			got, err := r.Poll(t.Context(), to(rewrite.OpenAIChat), "b")
			testkit.NoError(t, err)
			tt.want.ID = "b"
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// An odd object in a list hides no other; what is not a list does not prove that a batch is absent.
func TestOddObjectsInAList(t *testing.T) {
	t.Parallel()
	const ours = `{"id":"ours","created_at":1774437191,"status":"in_progress","metadata":{"submission_key":"k","n":1}}`
	for body, want := range map[string]int{
		`{"data":[{"id":"other","created_at":1774437191.5,"errors":[]},` + ours + `],"has_more":false}`:               1,
		`{"data":[7,null,"x",[],{},{"id":9,"metadata":"k"},` + ours + `]}`:                                            1,
		`{"data":[` + strings.Replace(ours, `{"submission_key":"k","n":1}`, `"{\"submission_key\":\"k\"}"`, 1) + `]}`: 1,
		`{"data":[{"id":"x","created_at":"never"}],"has_more":"false"}`:                                               0,
		`{"object":"list","data":null}`: 0,
		`{"error":{"message":"no"}}`:    -1,
		`{"data":{}}`:                   -1,
		`[]`:                            -1,
		`{"data":[{}],"has_more":true}`: -1,
		`{"data":[],"has_more":true}`:   -1, // BerriAI/litellm#38738: the rows of this page could not be read
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		batches, err := r.Batches(t.Context(), to(rewrite.OpenAIChat), time.Unix(0, 0))
		found := len(slices.DeleteFunc(batches, func(b rewrite.ProviderBatch) bool { return b.Key != "k" }))
		if want < 0 && err == nil || want >= 0 && (err != nil || found != want) {
			t.Errorf("%s: found %d, %v; want %d", body, found, err, want)
		}
	}
}
