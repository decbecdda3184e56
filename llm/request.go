package llm

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	openai "github.com/sashabaranov/go-openai"
)

// A dialect is what of the API a model turned out to know. Local servers know
// older names, or no answer format.
type dialect struct {
	format        AnswerFormat
	maxTokens     bool // max_tokens in place of max_completion_tokens
	noTemperature bool
}

// dialects holds what was learned of each model, so that a request is refused
// for the same reason only once.
type dialects struct {
	mu      sync.Mutex
	learned map[string]dialect
	first   dialect // before anything is known
}

func newDialects(format AnswerFormat) *dialects {
	return &dialects{learned: map[string]dialect{}, first: dialect{format: format}}
}

func (d *dialects) of(model string) dialect {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.learned[model]; ok {
		return known
	}
	return d.first
}

func (d *dialects) learn(model string, known dialect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.learned[model] = known
}

// adjust has req say what the model knows.
func (d dialect) adjust(req *openai.ChatCompletionRequest) {
	if d.maxTokens {
		req.MaxTokens, req.MaxCompletionTokens = req.MaxCompletionTokens, 0 //nolint:staticcheck // the newer name is what it does not know
	}
	if d.noTemperature {
		req.Temperature = 0
	}
}

// simpler is d without what the endpoint's complaint is about, ok false if it
// is about nothing that can be left out. A limit that is too large is no name
// that is unknown.
func (d dialect) simpler(status int, complaint string) (_ dialect, ok bool) {
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(complaint, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status != http.StatusBadRequest && status != http.StatusUnprocessableEntity && status != http.StatusNotImplemented:
		return d, false
	case says("max_completion_tokens") && !d.maxTokens && !says("too large", "at most", "maximum", "exceed"):
		d.maxTokens = true
	case says("response_format", "response format", "json_schema", "json_object", "grammar", "structured output") && d.format != FormatText:
		d.format = d.format.simpler()
	case says("temperature") && !d.noTemperature:
		d.noTemperature = true
	default:
		return d, false
	}
	return d, true
}

// simpler is the format that asks the least more of an endpoint.
func (f AnswerFormat) simpler() AnswerFormat {
	if f == FormatSchema {
		return FormatObject
	}
	return FormatText
}

// A question is what is asked of a model.
type question struct {
	// system is the message that all questions of a kind begin with, by the
	// format of the answer: so that providers can cache it.
	system map[AnswerFormat]string
	// user returns the message that shows the change, in a fence drawn anew.
	user func() (string, error)
	// shown is what the message shows, without the fence.
	shown string
	// schema is the JSON schema of the answer, and name what it is called.
	name, schema string
	// read takes an answer, checks it, and returns of it what may be kept. It
	// has passed redaction.
	read func(content string) (json.RawMessage, error)
}

// request asks q of model. note, if not empty, says why earlier answers were of
// no use; it comes last, so that the rest stays as it was.
func (r *Reviewer) request(model, user, note string, q question) openai.ChatCompletionRequest {
	d := r.dialects.of(model)
	req := openai.ChatCompletionRequest{
		Model: model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: q.system[d.format]},
			{Role: openai.ChatMessageRoleUser, Content: user},
		},
		MaxCompletionTokens: r.cfg.MaxAnswerTokens,
		Temperature:         r.cfg.Temperature,
		ResponseFormat:      &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatType(d.format)},
	}
	if note != "" {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: note})
	}
	d.adjust(&req)
	switch {
	case d.format == FormatSchema:
		req.ResponseFormat.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{Name: q.name, Schema: json.RawMessage(q.schema), Strict: true}
	case d.format == FormatText && r.cfg.AnswerFormat != FormatText:
		req.ResponseFormat = nil // it was the field that was refused
	}
	return req
}
