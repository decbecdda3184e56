package llmsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A FaultKind is a way to fail.
type FaultKind string

// The kinds of faults. The first group is answered with an HTTP error as
// OpenAI words it, the second breaks the connection or the response, the third
// spoils what the model says.
const (
	BadRequest        FaultKind = "bad_request"        // 400
	ContextLength     FaultKind = "context_length"     // 400 context_length_exceeded
	ContentPolicy     FaultKind = "content_policy"     // 400 content_policy_violation
	InvalidKey        FaultKind = "invalid_key"        // 401 invalid_api_key
	Forbidden         FaultKind = "forbidden"          // 403
	ModelNotFound     FaultKind = "model_not_found"    // 404 model_not_found
	RequestTimeout    FaultKind = "request_timeout"    // 408
	Conflict          FaultKind = "conflict"           // 409
	TooLarge          FaultKind = "too_large"          // 413
	RateLimit         FaultKind = "rate_limit"         // 429 rate_limit_exceeded
	InsufficientQuota FaultKind = "insufficient_quota" // 429 insufficient_quota
	Internal          FaultKind = "internal"           // 500 server_error
	BadGateway        FaultKind = "bad_gateway"        // 502 from a proxy, in HTML
	Unavailable       FaultKind = "unavailable"        // 503
	GatewayTimeout    FaultKind = "gateway_timeout"    // 504 from a proxy, in HTML

	Hang    FaultKind = "hang"     // no answer until the client gives up
	Drop    FaultKind = "drop"     // the connection ends without an answer
	CutBody FaultKind = "cut_body" // 200 with half of the JSON
	Garbage FaultKind = "garbage"  // 200 with HTML

	Fenced        FaultKind = "fenced"         // a good answer in a code fence
	Prose         FaultKind = "prose"          // a good answer with prose around it
	Thinking      FaultKind = "thinking"       // a good answer after a thinking block
	WrongLines    FaultKind = "wrong_lines"    // findings with wrong line numbers
	UnknownPath   FaultKind = "unknown_path"   // findings on a file that does not exist
	NotJSON       FaultKind = "not_json"       // no JSON in the answer
	BadSchema     FaultKind = "bad_schema"     // JSON of another shape
	CutAnswer     FaultKind = "cut_answer"     // half of the JSON, said to be all
	Length        FaultKind = "length"         // half of the JSON, finish_reason length
	Refusal       FaultKind = "refusal"        // the model refuses
	ContentFilter FaultKind = "content_filter" // finish_reason content_filter

	WrongLanguage   FaultKind = "wrong_language"   // a rewrite in another language
	LostPlaceholder FaultKind = "lost_placeholder" // a rewrite without its placeholders
	MadePlaceholder FaultKind = "made_placeholder" // a rewrite with one too many
	LongWinded      FaultKind = "long_winded"      // a rewrite of many pages
	LostAnswer      FaultKind = "lost_answer"      // carried out, but the connection ends without an answer
	OutOfRoom       FaultKind = "out_of_room"      // a batch fails: the limit of enqueued tokens
	BadFile         FaultKind = "bad_file"         // a batch fails: a line is not JSON
	Expire          FaultKind = "expire"           // a batch expires with half of its lines done
	CancelHalfway   FaultKind = "cancel_halfway"   // a batch is cancelled with half of its lines done
	MissingLines    FaultKind = "missing_lines"    // every third line of the output is not there
	DoubledLines    FaultKind = "doubled_lines"    // every line of the output stands there twice
	BrokenLines     FaultKind = "broken_lines"     // lines that nobody can read between the others
	NoFiles         FaultKind = "no_files"         // a batch completes without any file
	EmptyFileIDs    FaultKind = "empty_file_ids"   // file ids are "" instead of null
	NotCarriedOut   FaultKind = "not_carried_out"  // lines with status_code 0
	Forgotten       FaultKind = "forgotten"        // 404 on a batch that was there
	Scripted        FaultKind = "scripted"         // the model says what the fault's Content is
)

// An Operation is what a fault hits.
type Operation string

// The operations. Model is a call of the model, alone or as a line of a batch,
// and the default.
const (
	Model    Operation = "model"
	Upload   Operation = "upload"
	Create   Operation = "create"
	Retrieve Operation = "retrieve"
	List     Operation = "list"
	Cancel   Operation = "cancel"
	Content  Operation = "content"
	Delete   Operation = "delete"
	Batch    Operation = "batch" // how a batch that is created ends
)

// A Fault makes calls fail.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Times is the number of calls it hits; 0 means all until it is cleared.
	Times int `json:"times,omitempty"`
	// RetryAfter, if not empty, is sent as the header of that name: seconds or
	// an HTTP date.
	RetryAfter string `json:"retry_after,omitempty"`
	// On is what it hits. Default Model.
	On Operation `json:"on,omitempty"`
	// Match limits it to prompts that contain this text.
	Match string `json:"match,omitempty"`
	// Asked limits it to calls for the model of this name.
	Asked string `json:"asked,omitempty"`
	// Content is what the model says, of kind Scripted.
	Content string `json:"content,omitempty"`
}

// Inject adds a fault. Faults hit in the order they were added, one per call.
func (s *Server) Inject(f Fault) error {
	if !f.Kind.known() {
		return fmt.Errorf("fault kind %q is not known", f.Kind)
	}
	if f.Times < 0 {
		return fmt.Errorf("fault %s: times %d is negative", f.Kind, f.Times)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	return nil
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// nextFault uses up one time of the first fault that hits an operation, which
// for all but the model has no query.
func (s *Server) nextFault(on Operation, q query) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		f := &s.faults[i]
		if cmp.Or(f.On, Model) != on || !strings.Contains(q.prompt, f.Match) || f.Asked != "" && f.Asked != q.model {
			continue
		}
		hit := *f
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		s.stats.ByFault[hit.Kind]++
		return hit
	}
	return Fault{}
}

func (s *Server) postFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		http.Error(w, "llmsim: fault is not readable: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.Inject(f); err != nil {
		http.Error(w, "llmsim: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	s.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

// An apiError is an error answer.
type apiError struct {
	status              int
	kind, code, message string
}

// apiErrors holds the faults of the first group, worded as OpenAI does: some
// messages quote the request, which a client must not repeat.
var apiErrors = map[FaultKind]apiError{
	BadRequest:        {400, "invalid_request_error", "", "Invalid value in the request body."},
	ContextLength:     {400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in more tokens. Please reduce the length of the messages."},
	ContentPolicy:     {400, "invalid_request_error", "content_policy_violation", "Your request was rejected as a result of our safety system."},
	InvalidKey:        {401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: llm***key."},
	Forbidden:         {403, "invalid_request_error", "", "You are not allowed to sample from this model."},
	ModelNotFound:     {404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."},
	RequestTimeout:    {408, "invalid_request_error", "", "Request timed out."},
	Conflict:          {409, "invalid_request_error", "", "Another request is in progress."},
	TooLarge:          {413, "invalid_request_error", "", "Request too large."},
	RateLimit:         {429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."},
	InsufficientQuota: {429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
	Internal:          {500, "server_error", "", "The server had an error while processing your request."},
	Unavailable:       {503, "server_error", "", "The engine is currently overloaded, please try again later."},
}

// proxyErrors are answered by what stands before the endpoint, not in JSON.
var proxyErrors = map[FaultKind]int{BadGateway: 502, GatewayTimeout: 504}

func (k FaultKind) known() bool {
	_, api := apiErrors[k]
	_, proxy := proxyErrors[k]
	return api || proxy || slices.Contains([]FaultKind{
		Hang, Drop, CutBody, Garbage, Fenced, Prose, Thinking, WrongLines, UnknownPath,
		NotJSON, BadSchema, CutAnswer, Length, Refusal, ContentFilter,
		WrongLanguage, LostPlaceholder, MadePlaceholder, LongWinded, LostAnswer, OutOfRoom, BadFile, Expire, CancelHalfway,
		MissingLines, DoubledLines, BrokenLines, NoFiles, EmptyFileIDs, NotCarriedOut, Forgotten, Scripted,
	}, k)
}
