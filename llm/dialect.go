package llm

import (
	"context"
	"net/http"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// A dialect is the part of the API that a model's server supports. Local servers
// may know older parameters only, or no answer format.
type dialect struct {
	format        AnswerFormat
	maxTokens     bool // max_tokens instead of max_completion_tokens
	noTemperature bool
}

// dialect returns the learned dialect of a model. Because dialects are learned, a
// request is refused for the same reason only once.
func (r *Reviewer) dialect(model string) dialect {
	if d, ok := r.dialects.Load(model); ok {
		return d.(dialect)
	}
	return dialect{format: r.cfg.AnswerFormat}
}

// adjust replaces the parameters that the server does not support.
func (d dialect) adjust(req *openai.ChatCompletionRequest) {
	if d.maxTokens {
		req.MaxTokens, req.MaxCompletionTokens = req.MaxCompletionTokens, 0 //nolint:staticcheck // the server does not know the newer parameter
	}
	if d.noTemperature {
		req.Temperature = 0
	}
}

// simpler returns d without the parameter that the endpoint's error names; ok is
// false if it names none that can be left out. An error about a limit that is
// too large does not mean that the parameter is unknown.
func (d dialect) simpler(answer *openai.APIError) (_ dialect, ok bool) {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}, answer.HTTPStatusCode) {
		return d, false
	}
	text := answer.Message
	if answer.Param != nil {
		text += " " + *answer.Param
	}
	text = strings.ToLower(text)
	names := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case names("max_completion_tokens") && !d.maxTokens && !names("too large", "at most", "maximum", "exceed"):
		d.maxTokens = true
	case names("response_format", "response format", "json_schema", "json_object", "grammar", "structured output") && d.format != FormatText:
		if d.format == FormatSchema {
			d.format = FormatObject
		} else {
			d.format = FormatText
		}
	case names("temperature") && !d.noTemperature:
		d.noTemperature = true
	default:
		return d, false
	}
	return d, true
}

// learnFrom learns from an error which parameter the endpoint does not support,
// and reports whether there was one.
func (r *Reviewer) learnFrom(ctx context.Context, model string, err error) bool {
	answer, ok := errorAnswer(err)
	if !ok {
		return false
	}
	simpler, ok := r.dialect(model).simpler(answer)
	if ok {
		r.dialects.Store(model, simpler)
		r.lg.InfoContext(ctx, "endpoint does not support a parameter: asked without it", "answer_format", string(simpler.format), "max_tokens", simpler.maxTokens)
	}
	return ok
}
