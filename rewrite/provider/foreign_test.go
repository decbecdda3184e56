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

// Batches as servers describe them; with an issue, what users of batch APIs have reported.
func TestForeignBatches(t *testing.T) {
	t.Parallel()
	const problem = `"status":"failed","errors":{"object":"list","data":[%s]}`
	for batch, want := range map[string]rewrite.ProviderBatch{
		`"status":"failed","errors":[{"code":"token_limit_exceeded","line":null}]`:                   {Status: rewrite.BatchFailed, Full: true},                                                      // errors is a list
		`"status":"failed","errors":{"data":[{"code":"invalid_json_line","line":"2"}]}`:              {Status: rewrite.BatchFailed, FaultyLines: []int{2}},                                           // line is a text
		`"status":"failed","errors":{"data":[7,{"code":"model_not_found","line":1}]}`:                {Status: rewrite.BatchFailed, Refused: true},                                                   // an odd problem beside others
		`"status":"failed","errors":{"data":[{"code":"enqueued_request_limit_exceeded"}]}`:           {Status: rewrite.BatchFailed, Full: true},                                                      // a limit without a known code
		`"status":"completed","created_at":1774437191.5,"output_file_id":"o"`:                        {Status: rewrite.BatchCompleted, CreatedAt: time.Unix(1774437191, 0).UTC(), OutputFileID: "o"}, // created in fractions
		`"status":"completed","created_at":"2026-03-25T11:13:11Z"`:                                   {Status: rewrite.BatchCompleted, CreatedAt: time.Date(2026, 3, 25, 11, 13, 11, 0, time.UTC)},   // created as a text
		`"status":"failed","errors":"Enqueued token limit reached for m"`:                            {Status: rewrite.BatchFailed, Full: true},                                                      // errors are a text
		`"status":"failed","errors":{"data":[{"code":null,"message":"Incorrect API key provided"}]}`: {Status: rewrite.BatchFailed, Refused: true},                                                   // a reason in words
		`"status":"COMPLETED"`: {Status: rewrite.BatchCompleted}, // status in capitals
		`"status":"succeeded"`: {Status: rewrite.BatchCompleted}, // status of others
		`"status":"canceled"`:  {Status: rewrite.BatchCancelled}, // canceled with one l
		`"status":"completed","request_counts":{"completed":"3","failed":[]},"output_file_id":{}`: {Status: rewrite.BatchCompleted, Lines: 3}, // counts are texts
		// ProjectTech4DevAI/kaapi-backend#723: all lines failed
		`"status":"completed","output_file_id":null,"error_file_id":"file-E","errors":null,"request_counts":{"completed":0,"failed":9,"total":9}`: {Status: rewrite.BatchCompleted, ErrorFileID: "file-E", Lines: 9},
		// tobert/kaibo#93, tidyverse/ellmer#927 (Groq): no error file
		`"status":"completed","output_file_id":"o","error_file_id":""`:                                   {Status: rewrite.BatchCompleted, OutputFileID: "o"},
		`"status":"completed","output_file_id":"o","error_file_id":{}`:                                   {Status: rewrite.BatchCompleted, OutputFileID: "o"},
		`"status":"CANCELLING","request_counts":{"total":25}`:                                            {Status: rewrite.BatchInProgress}, // SAP/ai-sdk#464
		`"status":"PREPARING_INPUT"`:                                                                     {Status: rewrite.BatchInProgress},
		`"status":"finalizing","output_file_id":"allocated-before"`:                                      {Status: rewrite.BatchInProgress, OutputFileID: "allocated-before"}, // vllm-project/aibrix#2409
		`"status":"expired","output_file_id":"o","request_counts":{"total":10,"completed":1,"failed":0}`: {Status: rewrite.BatchExpired, OutputFileID: "o", Lines: 1},         // warmbly/warmbly#333
		// openai/openai-python#2084
		fmt.Sprintf(problem, `{"code":"token_limit_exceeded","line":null,"message":"Enqueued token limit reached for gpt-4o-mini in organization org-1. Limit: 2,000,000 enqueued tokens.","param":null}`): {Status: rewrite.BatchFailed, Full: true},
		// stdapi-ai/stdapi.ai#240: the documented codes
		fmt.Sprintf(problem, `{"code":"invalid_json_line","line":1,"message":"This line is not parseable as valid JSON."}`):       {Status: rewrite.BatchFailed, FaultyLines: []int{1}},
		fmt.Sprintf(problem, `{"code":"duplicate_custom_id","line":3,"message":"The custom_id for this request is a duplicate"}`): {Status: rewrite.BatchFailed, FaultyLines: []int{3}},
		fmt.Sprintf(problem, `{"code":"url_mismatch","line":1,"message":"The URL provided for this request does not match"}`):     {Status: rewrite.BatchFailed, Refused: true},
		fmt.Sprintf(problem, `{"code":"model_mismatch","line":2,"message":"All requests must have the same model"}`):              {Status: rewrite.BatchFailed, Refused: true},
		fmt.Sprintf(problem, `{"code":"empty_file","line":null,"message":"The input file is empty."}`):                            {Status: rewrite.BatchFailed, Refused: true},
		fmt.Sprintf(problem, `{"code":"too_many_tasks","line":null,"message":"The input file has too many requests."}`):           {Status: rewrite.BatchFailed, Full: true},
		// tobert/kaibo#169: the validator does not see a file that the API of files has
		fmt.Sprintf(problem, `{"code":null,"line":null,"message":"Cannot find file file-VC5, or organization org-1 does not have access to it."}`): {Status: rewrite.BatchFailed, Refused: true},
		// BerriAI/litellm-docs#1567: a restart of the gateway
		fmt.Sprintf(problem, `{"code":"runner_lost","line":null,"message":"The replica that ran the batch was restarted."}`): {Status: rewrite.BatchFailed, Full: true},
		// openai/openai-python#1643, acode-plugin-chatgpt#19
		fmt.Sprintf(problem, `{"code":"billing_hard_limit_reached","line":null,"message":"Billing hard limit has been reached."}`): {Status: rewrite.BatchFailed, Full: true},
		// experientiallabs/experiential#760, stdapi-ai/stdapi.ai#240: no reason at all
		`"status":"failed","errors":null,"request_counts":{"failed":1}`:        {Status: rewrite.BatchFailed, Lines: 1},
		fmt.Sprintf(problem, `{"code":"batch_failed","message":"job failed"}`): {Status: rewrite.BatchFailed},
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"id":"b",%s}`, batch) }))
		got, err := r.Poll(t.Context(), to(rewrite.OpenAIChat), "b")
		want.ID = "b"
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", batch, got, err, want)
		}
	}
}

// Lines of result files as servers write them. A part of another type or shape costs its own
// meaning and no other: the ID, the answer and the status are read without it.
func TestForeignLines(t *testing.T) {
	t.Parallel()
	const chat = `"choices":[{"index":0,"message":{"content":"{\"rewrite\":\"Good.\"}"},"finish_reason":"stop"}]`
	for line, want := range map[string]failure.Class{
		`"response":{"status_code":200,"body":{` + chat + `,"usage":{"prompt_tokens":1}}},"error":null`:                                                        "",                          // as documented
		`"response":{"status_code":200,"body":{` + chat + `,"usage":[1]}}`:                                                                                     "",                          // usage is a list
		`"response":{"status_code":200,"body":{` + chat + `,"usage":{"prompt_tokens":1.5}}}`:                                                                   "",                          // usage in fractions
		`"response":{"status_code":200,"body":{` + chat + `,"created":"today"}}`:                                                                               "",                          // created is a text
		`"response":{"status_code":"200","body":{` + chat + `}}`:                                                                                               "",                          // status is a text
		`"response":{"status_code":200,"body":{` + chat + `}},"error":""`:                                                                                      "",                          // error is an empty text
		`"response":{"status_code":200,"body":"{\"choices\":[{\"message\":{\"content\":\"{\\\"rewrite\\\":\\\"Good.\\\"}\"}}]}"}`:                              "",                          // body is a text
		`"response":{"status_code":200,"body":{"choices":[{"message":{"content":[{"type":"text","text":"{\"rewrite\":\"Good.\"}"}]}}]}}`:                       "",                          // content is a list of parts
		`"response":{"status_code":200,"body":{"choices":[{"message":{"content":null,"refusal":"no"}}]}}`:                                                      failure.ContentPolicy,       // content is null, a refusal
		`"response":{"status_code":200,"body":{"choices":{}}}`:                                                                                                 failure.UpstreamInternal,    // choices is an object
		`"response":{"status_code":200,"body":{"error":{"code":429,"message":"slow down"}}}`:                                                                   failure.RateLimited,         // an error with status 200
		`"response":{"status_code":200,"body":{"error":{"code":"insufficient_quota"}}}`:                                                                        failure.QuotaExhausted,      // no credit, status 200
		`"response":{"status_code":200,"body":{"choices":null,"error":"Rate limit exceeded"}}`:                                                                 failure.RateLimited,         // an error in words
		`"response":{"status_code":200,"body":null},"error":{"code":"insufficient_quota"}`:                                                                     failure.QuotaExhausted,      // status 200 without a body
		`"response":null,"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}`:                                                    failure.QuotaExhausted,      // not executed, no credit
		`"response":null,"error":"Incorrect API key provided"`:                                                                                                 failure.AuthDenied,          // not executed, in words
		`"response":{"status_code":400,"body":null},"error":"This model's maximum context length is 8 tokens"`:                                                 failure.TooLarge,            // error is a text
		`"response":{"status_code":400,"body":null},"error":{"message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}`: failure.TooLarge,            // code is a number
		`"response":{"status_code":429,"body":{"error":"slow down"}}`:                                                                                          failure.RateLimited,         // error in a body as a text
		`"response":{"status_code":400,"body":{"error":{"code":"content_filter","innererror":{"code":"x"},"param":7}}}`:                                        failure.ContentPolicy,       // filtered
		`"response":null,"error":"expired"`:                                                                                                                    failure.UpstreamInternal,    // not executed, with a text
		`"response":"","error":{"code":"batch_expired","message":[]}`:                                                                                          failure.UpstreamUnavailable, // expired
		`"response":{"body":{` + chat + `}}`:                                                                                                                   "",                          // no status
		`"response":{"body":{"error":{"code":"insufficient_quota"}}}`:                                                                                          failure.QuotaExhausted,      // no status, an error
		`"response":7,"error":[]`: failure.UpstreamInternal, // the ID and nothing else
		`"response":{"status_code":0,"request_id":"","body":{}},"error":null`: failure.UpstreamInternal, // tidyverse/ellmer#830
		`"response":{"status_code":400,"request_id":"0","body":{"error":{"message":"This model's maximum context length is 128000 tokens. However, you requested 1000024 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}},"error":null`: failure.TooLarge,            // openai/openai-openapi#302
		`"response":null,"error":{"code":"vertex_ai_error","message":"Resource exhausted. Please try again later."}`:                                                                                                                                                                 failure.UpstreamUnavailable, // BerriAI/litellm#27041
		`"response":{"status_code":503,"body":{}},"error":null`:                                                                                                              failure.UpstreamUnavailable, // llm-d/llm-d-batch-gateway#261: an empty body
		`"response":{"status_code":502,"body":{"error":{"message":"<html>Bad Gateway</html>"}}}`:                                                                             failure.UpstreamUnavailable, // and HTML
		`"response":null,"error":{"code":"batch_cancelled","message":"This request was cancelled."}`:                                                                         failure.UpstreamUnavailable, // llm-d/llm-d-batch-gateway#121
		`"response":null,"error":{"code":"batch_failed","message":"This request was not executed."}`:                                                                         failure.UpstreamInternal,
		`"response":null,"error":{"code":"batch_expired","message":"This request could not be executed before the completion window expired."}`:                              failure.UpstreamUnavailable, // warmbly/warmbly#333
		`"response":{"status_code":200,"body":{"choices":[{"finish_reason":"error","message":{"content":""}}]}}`:                                                             failure.UpstreamUnavailable, // the model's server broke off
		`"response":{"status_code":200,"body":{"choices":[{"finish_reason":"MAX_TOKENS","message":{"content":"{"}}]}}`:                                                       failure.TooLarge,
		`"response":{"status_code":200,"body":{"choices":[{"message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"{\"rewrite\":\"Good.\"}"}]}}]}}`: "", // Mistral
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "{\"id\":\"batch_req_1\",\"custom_id\":\"j\",%s}\n", line)
		}))
		testkit.NoError(t, r.Results(t.Context(), to(rewrite.OpenAIChat), "f", func(l rewrite.Line) error {
			if l.JobID != "j" || failure.ClassOf(l.Err) != want && (l.Err != nil || want != "") || want == "" && l.Answer != "Good." {
				t.Errorf("%s: got %+v, want class %q", line, l, want)
			}
			return nil
		}))
	}
}

// How an upload or a creation is refused for what no job causes.
func TestReportedRefusals(t *testing.T) {
	t.Parallel()
	for body, tt := range map[string]struct {
		status int
		want   failure.Class
	}{
		`{"error":{"code":"quotaExceeded","message":"The quota for files without expiry is reached. The maximum is 500."}}`:                                              {400, failure.QuotaExhausted},   // Azure/azure-sdk-for-java#47401
		`{"error":{"message":"Batch API is not available for your plan","code":"not_available_for_plan"}}`:                                                               {403, failure.PermissionDenied}, // jgravelle/GroqApiLibrary#22
		`{"timestamp":1722912177395,"status":404,"error":"Not Found","path":"/v1/files"}`:                                                                                {404, failure.NotFound},         // chatanywhere/GPT_API_free#277
		`{"error":{"message":"Error code: 400 - {'error': {'code': 'invalidPayload', 'message': 'Invalid value for purpose.'}}","type":null,"param":null,"code":"400"}}`: {400, failure.EndpointRefused},  // BerriAI/litellm#6582
		`{"error":{"message":"LiteLLM doesn't support litellm_proxy for 'create_file'. Only ['openai', 'azure'] are supported","code":"400"}}`:                           {400, failure.EndpointRefused},  // BerriAI/litellm#36240
		`{"error":{"message":"acreate_batch() missing 1 required positional argument: 'input_file_id'","type":"internal_server_error"}}`:                                 {500, failure.UpstreamInternal}, // BerriAI/litellm#37146
		`{"error":{"message":"Batch rate limit exceeded: 3 requests but only 2 remain"}}`:                                                                                {429, failure.RateLimited},      // BerriAI/litellm#37539
		`{"error":{"message":"batch file exceeds max_batch_file_size_mb"}}`:                                                                                              {413, failure.TooLarge},         // BerriAI/litellm-docs#950
	} {
		r, _ := newRewriter(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, body)
		}))
		_, err := r.Upload(t.Context(), to(rewrite.OpenAIChat), []rewrite.Item{complaint(t, "job-1")})
		if failure.ClassOf(err) != tt.want {
			t.Errorf("%s: upload: %v of class %s, want %s", body, err, failure.ClassOf(err), tt.want)
		}
	}
}
