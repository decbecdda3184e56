package provider_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
)

// What users of batch APIs have reported, with the issue.
func TestReportedBatches(t *testing.T) {
	t.Parallel()
	const problem = `"status":"failed","errors":{"object":"list","data":[%s]}`
	for batch, want := range map[string]rewrite.ProviderBatch{
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

func TestReportedLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]failure.Class{
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
