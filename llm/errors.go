package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A meaning is what a status or error code of the endpoint means.
type meaning struct {
	class failure.Class
	text  string // completes "model endpoint answered 401: ..."
}

// statuses are the meanings of HTTP statuses (processing 8.1).
var statuses = map[int]meaning{
	400: {failure.EndpointRefused, "the request is refused; check that the endpoint supports the answer format and every parameter"},
	401: {failure.AuthDenied, "the API key is refused"},
	402: {failure.QuotaExhausted, "the account has no credit"},
	403: {failure.PermissionDenied, "the account has no access to this model"},
	404: {failure.NotFound, "no such path or model; check base URL and model"},
	405: {failure.ConfigInvalid, "no chat completions at this path; check the base URL"},
	408: {failure.NetworkTimeout, "it timed out waiting for the request"},
	409: {failure.WriteConflict, "conflict with another request"},
	410: {failure.NotFound, "the model is gone"},
	413: {failure.TooLarge, "the request is too large; lower the prompt limit"},
	429: {failure.RateLimited, "too many requests or tokens"},
	500: {failure.UpstreamInternal, "internal error"},
	502: {failure.UpstreamUnavailable, "its gateway cannot reach it"},
	503: {failure.UpstreamUnavailable, "it is unavailable or overloaded"},
	504: {failure.UpstreamUnavailable, "its gateway timed out"},
	529: {failure.UpstreamUnavailable, "it is overloaded"},
}

// codes are the meanings of error codes, which are more specific than the status.
// A code that is not listed is text of the endpoint: it is only quoted if it has the form of
// a code, and nothing else says why the request was refused.
var codes = map[string]meaning{
	"invalid_api_key":              {failure.AuthDenied, "the API key is refused"},
	"insufficient_quota":           {failure.QuotaExhausted, "the account has no credit"},
	"billing_hard_limit_reached":   {failure.QuotaExhausted, "the account has reached its spending limit"},
	"billing_not_active":           {failure.QuotaExhausted, "the account is not active"},
	"rate_limit_exceeded":          {failure.RateLimited, "too many requests or tokens"},
	"model_not_found":              {failure.ConfigInvalid, "no such model; check the model"},
	"unsupported_parameter":        {failure.ConfigInvalid, "the model does not support a parameter; check temperature and answer format"},
	"unsupported_value":            {failure.ConfigInvalid, "the model does not support a parameter's value; check temperature and answer format"},
	"invalid_json_schema":          {failure.ConfigInvalid, "the JSON schema is not supported; choose another answer format"},
	"context_length_exceeded":      tooLong,
	"exceed_context_size_error":    tooLong,
	"string_above_max_length":      tooLong,
	"content_filter":               {failure.ContentPolicy, "the content is refused"},
	"content_policy_violation":     {failure.ContentPolicy, "the content is refused"},
	"ResponsibleAIPolicyViolation": {failure.ContentPolicy, "the content is refused"},
	"API_KEY_INVALID":              {failure.AuthDenied, "the API key is refused"},
	"overloaded_error":             {failure.UpstreamUnavailable, "it is overloaded"},
	"internal_error":               {failure.UpstreamInternal, "internal error"},
}

var tooLong = meaning{failure.TooLarge, "the prompt and answer are longer than the model supports; lower the limits of prompt and answer"}

// Refused returns the error of one request of a batch, which the endpoint
// reported as an HTTP status and the code, type and message of an error.
func Refused(status int, code, kind, message string) error {
	return answeredError(apiError{status: status, Code: code, Type: kind, Message: message}, nil)
}

// An apiError is the error with which an endpoint answered, in the format of OpenAI or
// Google. The fields that are decoded are untrusted and never quoted.
type apiError struct {
	status  int
	text    string // the error in our words
	Code    any    `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Param   string `json:"param"`
	Details []struct {
		Reason string `json:"reason"`
	} `json:"details"`
}

func (e apiError) Error() string { return e.text }

func responseError(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes)) // without a body the status alone counts
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Error) == 0 {
		answer.Error = body // some servers have the error at the top, or as text
	}
	return bodyError(resp.StatusCode, answer.Error, resp.Header)
}

// bodyError returns the error in an answer with a status. If that is 200, the code in
// the error is the status, or 500.
func bodyError(status int, body json.RawMessage, h http.Header) error {
	var e apiError
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		e.Message = string(body)
	}
	if e.status = status; status == http.StatusOK {
		e.status = http.StatusInternalServerError
		if code, err := strconv.Atoi(fmt.Sprint(e.Code)); err == nil && code >= 400 && code < 600 {
			e.status = code
		}
	}
	return answeredError(e, h)
}

// answeredError returns the error of e with its class.
func answeredError(e apiError, h http.Header) error {
	upstream, m := strconv.Itoa(e.status), meaningOf(e.status)
	if code := e.known(); code != "" {
		upstream, m = upstream+" "+code, codes[code]
	} else if code, _ := e.Code.(string); m.class == failure.EndpointRefused && codePattern.MatchString(code) {
		upstream += " " + code
	}
	e.text = fmt.Sprintf("model endpoint answered %s: %s", upstream, m.text)
	return &failure.Error{
		Class:      m.class,
		Err:        e,
		RetryAfter: failure.RetryAfter(h, time.Now()),
		Upstream:   upstream,
		RequestID:  requestID(h),
	}
}

func meaningOf(status int) meaning {
	m, ok := statuses[status]
	switch {
	case ok:
		return m
	case status >= 520 && status < 530: // from proxies: the origin is unreachable
		return statuses[http.StatusServiceUnavailable]
	case status >= 500:
		return statuses[http.StatusInternalServerError]
	}
	return statuses[http.StatusBadRequest]
}

// known returns the listed code of e: its code, its type, a reason in its details, or the
// code that its message means.
func (e apiError) known() string {
	code, _ := e.Code.(string)
	named := []string{code, e.Type}
	for _, d := range e.Details {
		named = append(named, d.Reason)
	}
	for _, c := range named {
		if _, ok := codes[c]; ok {
			return c
		}
	}
	text := strings.ToLower(e.Message)
	if slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity}, e.status) {
		switch words := text[:min(len(text), maxReason)]; {
		case creditRefused.MatchString(words):
			return "insufficient_quota"
		case keyRefused.MatchString(words):
			return "invalid_api_key"
		}
	}
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	for _, d := range dialects {
		switch {
		case e.status >= 400 && e.status != 429 && has(d.TooLong):
			return "context_length_exceeded"
		case e.status >= 400 && e.status < 500 && has(d.Refused):
			return "content_filter"
		case e.status >= 400 && e.status != 429 && has(d.Busy):
			return "overloaded_error"
		}
	}
	return ""
}

// codePattern matches the code of an error: lower-case words.
var codePattern = regexp.MustCompile(`^[a-z]{2,20}(?:_[a-z]{1,20}){1,5}$`)

// contextLength matches the number of tokens that an endpoint says it reads in one call, in an
// error about a prompt and answer that are too long.
var contextLength = regexp.MustCompile(`(?:<=?|>) ?(\d{4,9})\b|\b(?:maximum|limit|context|up to|at most|supports|only)\D{0,40}?(\d{4,9})\b|\b(\d{4,9})(?: tokens?)? (?:maximum|limit|context)`)

// contextTokens returns the smallest number of tokens that e says the endpoint reads in one
// call, 0 if it says none.
func (e apiError) contextTokens() (least int) {
	text := strings.ReplaceAll(strings.ToLower(e.Message[:min(len(e.Message), maxReason)]), ",", "")
	for _, m := range contextLength.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1] + m[2] + m[3]); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// maxReason is how much of a message is searched for the reason of a refusal: some servers
// quote the request after it.
const maxReason = 500

// keyRefused and creditRefused match the messages of endpoints that refuse a key or an
// account with the status of an invalid request: a noun and, close to it, what is wrong.
var keyRefused, creditRefused = near(
	`api[ _-]?keys?\b|(?:access|auth|bearer)[ _-]?tokens?\b|credentials?\b|\bauthentication|\bauthorization`,
	`invalid|incorrect|not valid|expired|revoked|malformed|missing|disabled|deactivated|deleted|wrong|rejected|denied|failed|required|`+
		`\bno\b|\bbad\b|unauthorized|not (?:found|provided|passed|authorized|recognized|active)`,
), near(
	`\bcredits?\b|\bbalance\b|\bfunds\b|budget\b|\bquota\b|\bbilling\b|spending limit|\bpayment\b`,
	`\blow\b|insufficient|exceed|exhausted|depleted|required|reached|overdue|inactive|used up|\bempty\b|\bno\b|not enough|\bnegative\b|r[ua]n out|out of`,
)

func near(noun, fault string) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`(?:%[1]s).{0,40}?(?:%[2]s)|(?:%[2]s).{0,40}?(?:%[1]s)`, noun, fault))
}

// answerError is the error of an answer that was received in full.
func answerError(class failure.Class, h http.Header, err error) error {
	return &failure.Error{Class: class, Err: err, RequestID: requestID(h)}
}

func malformed(h http.Header) error {
	return answerError(failure.SchemaInvalid, h, errors.New("answer of the model is unusable: it violates the API"))
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

// requestID returns the endpoint's request ID if it has the form of an ID.
func requestID(h http.Header) string {
	if id := h.Get("X-Request-Id"); requestIDPattern.MatchString(id) {
		return id
	}
	return ""
}
