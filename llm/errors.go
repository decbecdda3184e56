package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
)

// A verdict is what a status or code of the endpoint means to us.
type verdict struct {
	class failure.Class
	says  string // completes "model endpoint answered 401: ..."
}

// statuses holds the verdicts on HTTP statuses (criticizer-processing 8.1).
var statuses = map[int]verdict{
	400: {failure.InputInvalid, "it calls the request invalid; check that it knows the answer format and every parameter"},
	401: {failure.AuthDenied, "it does not accept the API key"},
	402: {failure.QuotaExhausted, "the account has no credit"},
	403: {failure.PermissionDenied, "the account may not use this model"},
	404: {failure.NotFound, "it knows no such path or model; check base URL and model"},
	405: {failure.ConfigInvalid, "it takes no chat completions there; check the base URL"},
	408: {failure.NetworkTimeout, "it waited too long for the request"},
	409: {failure.WriteConflict, "another request got in the way"},
	410: {failure.NotFound, "the model is gone"},
	413: {failure.TooLarge, "the request is too large; lower the prompt limit"},
	429: {failure.RateLimited, "too many requests or tokens"},
	500: {failure.UpstreamInternal, "it failed"},
	502: {failure.UpstreamUnavailable, "it cannot be reached behind its gateway"},
	503: {failure.UpstreamUnavailable, "it is unavailable or overloaded"},
	504: {failure.UpstreamUnavailable, "its gateway timed out"},
	529: {failure.UpstreamUnavailable, "it is overloaded"},
}

// codes holds the verdicts on error codes. A code says more than its status,
// and one that is not listed is never repeated: it is the endpoint's text.
var codes = map[string]verdict{
	"invalid_api_key":              {failure.AuthDenied, "it does not accept the API key"},
	"insufficient_quota":           {failure.QuotaExhausted, "the account has no credit"},
	"billing_hard_limit_reached":   {failure.QuotaExhausted, "the account has reached its limit of cost"},
	"billing_not_active":           {failure.QuotaExhausted, "the account is not active"},
	"rate_limit_exceeded":          {failure.RateLimited, "too many requests or tokens"},
	"model_not_found":              {failure.ConfigInvalid, "it has no such model; check the model"},
	"unsupported_parameter":        {failure.ConfigInvalid, "the model does not take a parameter; check temperature and answer format"},
	"unsupported_value":            {failure.ConfigInvalid, "the model does not take a parameter's value; check temperature and answer format"},
	"invalid_json_schema":          {failure.ConfigInvalid, "it does not take the JSON schema; choose another answer format"},
	"context_length_exceeded":      tooLong,
	"exceed_context_size_error":    tooLong,
	"string_above_max_length":      tooLong,
	"content_filter":               {failure.ContentPolicy, "it refuses the content"},
	"content_policy_violation":     {failure.ContentPolicy, "it refuses the content"},
	"ResponsibleAIPolicyViolation": {failure.ContentPolicy, "it refuses the content"},
	"API_KEY_INVALID":              {failure.AuthDenied, "it does not accept the API key"},
	"internal_error":               {failure.UpstreamInternal, "it failed"},
}

var tooLong = verdict{failure.TooLarge, "the prompt and answer are longer than the model takes; lower the limits of prompt and answer"}

// classify turns an error of one call into ours. Nothing of what the endpoint
// said goes into the text but its status and a code we know.
func (r *Reviewer) classify(ctx context.Context, err error, h http.Header) error {
	return classify(ctx, err, h, r.cfg.Timeout)
}

func classify(ctx context.Context, err error, h http.Header, timeout time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("ask the model: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Errorf(failure.NetworkTimeout, "call of the model timed out after %s: %w", timeout, context.DeadlineExceeded)
	}
	if ours, ok := errors.AsType[*failure.Error](err); ok {
		return fmt.Errorf("ask the model: %w", ours)
	}
	// An error that is no object, as some local servers answer, is one of both.
	if other, ok := errors.AsType[*openai.RequestError](err); ok {
		said := &openai.APIError{HTTPStatusCode: other.HTTPStatusCode, Message: string(other.Body)}
		return answered(other.HTTPStatusCode, knownCode(said), h)
	}
	if api, ok := errors.AsType[*openai.APIError](err); ok {
		return answered(api.HTTPStatusCode, knownCode(api), h)
	}
	if h != nil {
		return malformed(h, "it is not what the API promises")
	}
	// What is left is go-openai's own check of model and parameters.
	return failure.Errorf(failure.ConfigInvalid, "ask the model: model or temperature is not possible here: %w", err)
}

// answered is the error of a request that was answered with an error.
func answered(status int, code string, h http.Header) error {
	upstream, v := strconv.Itoa(status), onStatus(status)
	if known, ok := codes[code]; ok {
		upstream, v = upstream+" "+code, known
	}
	return &failure.Error{
		Class:      v.class,
		Err:        fmt.Errorf("model endpoint answered %s: %s", upstream, v.says),
		RetryAfter: failure.RetryAfter(h, time.Now()),
		Upstream:   upstream,
		RequestID:  requestID(h),
	}
}

func onStatus(status int) verdict {
	v, ok := statuses[status]
	switch {
	case ok:
		return v
	case status >= 520 && status < 530: // proxies' own: the origin is not reachable
		return statuses[http.StatusServiceUnavailable]
	case status >= 500:
		return statuses[http.StatusInternalServerError]
	}
	return statuses[http.StatusBadRequest]
}

// knownCode is the listed code that e stands for, in its code, its type or,
// for servers that have neither for it, the words of a prompt too long.
func knownCode(e *openai.APIError) string {
	code, _ := e.Code.(string)
	for _, c := range []string{code, e.Type} {
		if _, ok := codes[c]; ok {
			return c
		}
	}
	text := strings.ToLower(e.Message)
	if e.HTTPStatusCode == http.StatusBadRequest && (strings.Contains(text, "context length") || strings.Contains(text, "context size")) {
		return "context_length_exceeded"
	}
	return ""
}

// malformed is the error of an answer that is not what was asked for.
func malformed(h http.Header, why string) error {
	return &failure.Error{
		Class:     failure.SchemaInvalid,
		Err:       fmt.Errorf("answer of the model cannot be used: %s", why),
		RequestID: requestID(h),
	}
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

// requestID is the endpoint's id of the request, if it looks like one.
func requestID(h http.Header) string {
	if id := h.Get("X-Request-Id"); requestIDPattern.MatchString(id) {
		return id
	}
	return ""
}
