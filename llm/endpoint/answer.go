package endpoint

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An Answer is the answer of a model as its endpoint sent it, whole or in a stream. All of
// its text is untrusted.
type Answer struct {
	Model, Content, Refusal string
	Thinking                string // in a field of its own
	Finish                  string // as the endpoint words it, "" if it sent none
	Early                   bool   // the stream ended without a finish reason
	Tools                   bool   // the model called a tool
	Reasoning               int    // tokens of thinking, as far as they were reported
	Usage                   review.Usage
	Parts                   int // of a stream; each has at least one token
	Limit                   int // tokens that were granted to it
	RequestID               string
	Begun                   bool // the endpoint began to answer, so that the prompt was read and counts
	chosen                  bool // it answered with a choice
}

// A End is the meaning of a finish reason.
type End int

// The ends of an answer.
const (
	EndUnknown End = iota // none or another: the content decides
	EndWhole
	EndCut     // at the limit of tokens
	EndRefused // by a filter
	EndBroken  // by a failure of the endpoint that may pass
)

// ends are the finish reasons of all vendors, in lower case.
var ends = map[string]End{
	"stop": EndWhole, "end_turn": EndWhole, "eos": EndWhole, "eos_token": EndWhole, "completed": EndWhole, "stop_sequence": EndWhole, "complete": EndWhole,
	"length": EndCut, "max_tokens": EndCut, "max_output_tokens": EndCut, "model_context_window_exceeded": EndCut, "model_length": EndCut, "max_length": EndCut, "context_length": EndCut,
	"content_filter": EndRefused, "safety": EndRefused, "refusal": EndRefused, "recitation": EndRefused, "prohibited_content": EndRefused, "blocklist": EndRefused,
	"spii": EndRefused, "sensitive": EndRefused, "guardrail_intervened": EndRefused, "content_filtered": EndRefused, "moderation": EndRefused, "flagged": EndRefused,
	"error": EndBroken, "network_error": EndBroken, "insufficient_system_resource": EndBroken, "engine_overloaded": EndBroken, "overloaded": EndBroken, "timeout": EndBroken,
	"abort": EndBroken, "aborted": EndBroken, "cancelled": EndBroken, "canceled": EndBroken, "server_error": EndBroken, "internal_error": EndBroken, "system_error": EndBroken,
}

// End returns the meaning of the finish reason of a. Google appends its own reason to OpenAI's.
func (a Answer) End() End {
	reason, _, _ := strings.Cut(strings.ToLower(a.Finish), ":")
	return ends[strings.ReplaceAll(reason, "-", "_")]
}

// Broken returns the error of an answer that the endpoint broke off, if it did.
func (a Answer) Broken() error {
	if a.End() == EndBroken {
		return a.Fail(failure.UpstreamUnavailable, errors.New("model endpoint broke its answer off"))
	}
	return nil
}

// Read returns the answer in the body of a response, such as a line of a batch has. Its errors are
// those of [Endpoint.Ask].
func Read(body []byte) (a Answer, err error) {
	if err = a.add(body, nil); err == nil && !a.chosen {
		err = malformed(nil)
	}
	return a, err
}

// A text is a content: a string, or a list of parts of which some are thinking.
type text struct{ said, thought string }

// UnmarshalJSON accepts any JSON: what is not text is left out.
func (t *text) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.said) == nil {
		return nil
	}
	var parts []struct {
		Type           string
		Text, Thinking text
	}
	if json.Unmarshal(data, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		t.thought += p.Text.thought + p.Thinking.said + p.Thinking.thought
		if p.Type == "thinking" || p.Type == "reasoning" {
			t.thought += p.Text.said
		} else {
			t.said += p.Text.said
		}
	}
	return nil
}

// A message is the content of a choice or of a part of it.
type message struct {
	Content      text            `json:"content"`
	Reasoning    text            `json:"reasoning"`
	ReasoningOf  text            `json:"reasoning_content"`
	Thinking     text            `json:"thinking"`
	Refusal      text            `json:"refusal"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
}

// A usage has the counters of all vendors.
type usage struct {
	Prompt     int        `json:"prompt_tokens"`
	Completion int        `json:"completion_tokens"`
	Input      int        `json:"input_tokens"`
	Output     int        `json:"output_tokens"`
	PromptIn   usageParts `json:"prompt_tokens_details"`
	CompleteIn usageParts `json:"completion_tokens_details"`
	Cached     int        `json:"cached_tokens"`
	CacheHit   int        `json:"prompt_cache_hit_tokens"`
	CacheRead  int        `json:"cache_read_input_tokens"`
	CacheWrite int        `json:"cache_creation_input_tokens"`
}

type usageParts struct {
	Cached    int `json:"cached_tokens"`
	Reasoning int `json:"reasoning_tokens"`
}

// add adds one event of the answer, or the whole one. An error within an answer gets its
// status from its code, because the status of the response is 200.
func (a *Answer) add(event []byte, h http.Header) error {
	var part struct {
		Model   string `json:"model"`
		Choices []struct {
			Message      message
			Delta        *message
			Text         text
			FinishReason *string         `json:"finish_reason"`
			Error        json.RawMessage `json:"error"`
			Usage        *usage          `json:"usage"`
		} `json:"choices"`
		Usage *usage          `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if _, other := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(event, &part)); !other && !json.Valid(event) {
		return malformed(h)
	}
	switch {
	case isSet(part.Error):
		return classify(http.StatusOK, event, h)
	case part.Choices == nil && (part.Usage == nil || *part.Usage == usage{}) && read(event).text != "": // an error in another shape
		return classify(http.StatusOK, event, h)
	case part.Choices == nil && part.Usage == nil: // it keeps the connection alive
		return nil
	}
	a.Parts++
	a.chosen = a.chosen || len(part.Choices) > 0
	if part.Model != "" {
		a.Model = part.Model
	}
	u := part.Usage
	if len(part.Choices) > 0 {
		choice := part.Choices[0]
		if isSet(choice.Error) {
			return classify(http.StatusOK, choice.Error, h)
		}
		m, whole := choice.Message, true
		if d := choice.Delta; d != nil && (d.Content != text{} || m.Content == text{}) { // Perplexity sends both
			m, whole = *d, false
		}
		thought := m.ReasoningOf.said
		if thought == "" { // some servers send both
			thought = m.Reasoning.said + m.Thinking.said
		}
		a.Content = grown(a.Content, m.Content.said+choice.Text.said, whole)
		a.Thinking = grown(a.Thinking, m.Content.thought+thought, whole)
		a.Refusal += m.Refusal.said
		a.Tools = a.Tools || len(m.ToolCalls) > len("null") || len(m.FunctionCall) > len("null")
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			a.Finish = *choice.FinishReason
		}
		if choice.Usage != nil {
			u = choice.Usage
		}
	}
	if u != nil {
		a.Usage.PromptTokens, a.Usage.CompletionTokens = max(u.Prompt, u.Input), max(u.Completion, u.Output)
		a.Usage.CachedTokens = max(u.PromptIn.Cached, u.CacheHit, u.Cached, u.CacheRead)
		// input_tokens of Anthropic do not contain the cached ones, prompt_tokens of some servers neither.
		if cache := max(a.Usage.CachedTokens, u.CacheRead+u.CacheWrite); cache > a.Usage.PromptTokens || u.Prompt == 0 && u.CacheRead+u.CacheWrite > 0 {
			a.Usage.PromptTokens += cache
		}
		a.Reasoning = max(u.CompleteIn.Reasoning, a.Reasoning)
	}
	return nil
}

// grown returns text with the next part of it. A message has all of the text so far, and so have the
// parts of some servers, such as DashScope: a longer part that begins with the text replaces it, unless
// the text is so short that a word may repeat it.
func grown(text, part string, whole bool) string {
	repeats := len(part) > len(text) && (len(text) > 16 || strings.ContainsAny(text[:min(len(text), 1)], "{`<"))
	if (whole || repeats) && strings.HasPrefix(part, text) {
		return part
	}
	return text + part
}

// isSet reports whether a JSON value is there and says something.
func isSet(v json.RawMessage) bool {
	switch string(v) {
	case "", "null", `""`, "{}", "[]", "false":
		return false
	}
	return true
}
