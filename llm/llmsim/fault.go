package llmsim

import (
	"cmp"
	"slices"
	"strings"
)

// A FaultKind names a failure.
type FaultKind string

// The fault kinds that are answered with an HTTP error as OpenAI words it, or
// as a proxy does.
const (
	BadRequest        FaultKind = "bad_request"        // 400
	ContextLength     FaultKind = "context_length"     // 400 context_length_exceeded
	ContentPolicy     FaultKind = "content_policy"     // 400 content_policy_violation
	InvalidKey        FaultKind = "invalid_key"        // 401 invalid_api_key
	Forbidden         FaultKind = "forbidden"          // 403
	ModelNotFound     FaultKind = "model_not_found"    // 404 model_not_found
	NotFound          FaultKind = "not_found"          // 404 on a file or batch
	Conflict          FaultKind = "conflict"           // 409
	RateLimit         FaultKind = "rate_limit"         // 429 rate_limit_exceeded
	InsufficientQuota FaultKind = "insufficient_quota" // 429 insufficient_quota
	Internal          FaultKind = "internal"           // 500 server_error
	BadGateway        FaultKind = "bad_gateway"        // 502 from a proxy, in HTML
	Unavailable       FaultKind = "unavailable"        // 503
	GatewayTimeout    FaultKind = "gateway_timeout"    // 504 from a proxy, in HTML
)

// The fault kinds that break the connection or the response.
const (
	Hang       FaultKind = "hang"        // no answer until the client disconnects
	Drop       FaultKind = "drop"        // the connection ends without an answer
	LostAnswer FaultKind = "lost_answer" // the operation is executed, then the connection ends
	CutBody    FaultKind = "cut_body"    // 200 with half of the JSON
	Garbage    FaultKind = "garbage"     // 200 with HTML
)

// The fault kinds that change the model's answer.
const (
	Prose           FaultKind = "prose"            // a valid answer with prose around it
	NotJSON         FaultKind = "not_json"         // an answer without JSON
	BadSchema       FaultKind = "bad_schema"       // JSON that violates the schema
	CutAnswer       FaultKind = "cut_answer"       // half of the JSON, finish_reason stop
	Length          FaultKind = "length"           // half of the JSON, finish_reason length
	Refusal         FaultKind = "refusal"          // the model refuses
	ContentFilter   FaultKind = "content_filter"   // finish_reason content_filter
	LostPlaceholder FaultKind = "lost_placeholder" // a rewrite without its placeholders
	MadePlaceholder FaultKind = "made_placeholder" // a rewrite with an invented placeholder
	Scripted        FaultKind = "scripted"         // the answer is the fault's Content
)

// The fault kinds of the operation [Batch]: how a created batch ends.
const (
	OutOfRoom     FaultKind = "out_of_room"     // it fails: limit of enqueued tokens
	Expire        FaultKind = "expire"          // it expires with half of its lines done
	CancelHalfway FaultKind = "cancel_halfway"  // it is canceled with half of its lines done
	MissingLines  FaultKind = "missing_lines"   // every third line of the output is missing
	DoubledLines  FaultKind = "doubled_lines"   // every line of the output is there twice
	BrokenLines   FaultKind = "broken_lines"    // malformed lines between the others
	NoFiles       FaultKind = "no_files"        // it completes without any file
	EmptyFileIDs  FaultKind = "empty_file_ids"  // file IDs are "" instead of null
	NotCarriedOut FaultKind = "not_carried_out" // lines have status_code 0
	Forgotten     FaultKind = NotFound          // an existing batch is answered with 404
)

// An Operation is an operation of the endpoint.
type Operation string

// The operations.
const (
	Model    Operation = "model" // a model call, alone or as a line of a batch
	Models   Operation = "models"
	Upload   Operation = "upload"
	Create   Operation = "create"
	Retrieve Operation = "retrieve"
	List     Operation = "list"
	Cancel   Operation = "cancel"
	Content  Operation = "content"
	Delete   Operation = "delete"
	Batch    Operation = "batch" // the execution of a created batch
)

// A Fault makes calls fail.
type Fault struct {
	Kind FaultKind
	// Times is the number of calls that fail. Default 0: all, until
	// [Server.ClearFaults].
	Times int
	// RetryAfter, if not empty, is the response's Retry-After header.
	RetryAfter string
	// On is the operation that fails. Default Model.
	On Operation
	// Match restricts the fault to prompts that contain this text.
	Match string
	// Asked restricts the fault to calls of the model with this name.
	Asked string
	// Content is the answer of a fault of kind Scripted. An object that begins with a
	// list gets the check codes of the prompt.
	Content string
}

// Inject adds faults. They apply in the order in which they were added, one per call.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault returns the first fault that applies to an operation and uses up one
// of its times. q is the zero query unless on is Model. The caller holds s.mu.
func (s *Server) takeFault(on Operation, q query) Fault {
	for i := range s.faults {
		f := &s.faults[i]
		if cmp.Or(f.On, Model) != on || !strings.Contains(q.prompt, f.Match) || f.Asked != "" && f.Asked != q.model {
			continue
		}
		taken := *f
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		s.stats.ByFault[taken.Kind]++
		return taken
	}
	return Fault{}
}

// An apiError is an error as the API words it.
type apiError struct {
	status              int
	kind, code, message string
}

// apiErrors is worded as OpenAI does: some messages quote the request, which a
// client must not repeat.
var apiErrors = map[FaultKind]apiError{
	BadRequest:        {400, "invalid_request_error", "", "Invalid value in the request body."},
	ContextLength:     {400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in more tokens. Please reduce the length of the messages."},
	ContentPolicy:     {400, "invalid_request_error", "content_policy_violation", "Your request was rejected as a result of our safety system."},
	InvalidKey:        {401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: llm***key."},
	Forbidden:         {403, "invalid_request_error", "", "You are not allowed to sample from this model."},
	ModelNotFound:     {404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."},
	NotFound:          {404, "invalid_request_error", "", "No such object."},
	Conflict:          {409, "invalid_request_error", "", "Another request is in progress."},
	RateLimit:         {429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."},
	InsufficientQuota: {429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
	Internal:          {500, "server_error", "", "The server had an error while processing your request."},
	Unavailable:       {503, "server_error", "", "The engine is currently overloaded, please try again later."},
}

// htmlReplies are the statuses of faults that are answered in HTML.
var htmlReplies = map[FaultKind]int{BadGateway: 502, GatewayTimeout: 504, Garbage: 200}
