// Package endpoint asks models through one OpenAI-compatible endpoint, with the client of
// go-openai. [Endpoint.Ask] is the entry point: it accepts only [redaction.Text], sends what
// go-openai encodes through one transport (transport.go), and reads the answer, whole or
// streamed (stream.go, answer.go). An error has a class, which rules decide (errors.go,
// errorclasses.go), and quotes nothing of the endpoint. What an endpoint refuses is asked in
// another way and remembered (habits.go); what no error teaches is in dialects.go. Nothing is
// retried.
package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
)

// Config configures an [Endpoint].
type Config struct {
	// OpenAI-compatible endpoint. With http to another host a key is refused, and
	// allow_cleartext must name llm. For Azure, https://NAME.openai.azure.com/openai/v1,
	// or the URL of the deployment with ?api-version=VERSION.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1" required:"the URL of the endpoint" check:"http-url"`
	// API key of the endpoint. During a rotation the old key is in a second line: it is used
	// if the endpoint rejects the first. Unset for a server on this host without
	// authentication.
	APIKey secret.Value `yaml:"api_key" env:"OPENAI_API_KEY"`
	// KeyHeader is the header of the key. Default "": that of the dialect.
	KeyHeader string
	// HTTP headers of every request, each as 'Name: value', without secrets.
	Headers []string `yaml:"headers"`
	// How the server takes the key and names its model: auto detects it (docs/model.md).
	Dialect string `yaml:"dialect" default:"auto" oneof:"auto hosted azure"`
	// Longest silence of the endpoint during a call, before or within its answer. A call
	// takes at most four times as long.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
}

// Check implements the checks of package config. http to another host is a private server
// without a key; https is a provider.
func (c Config) Check(p *config.Problems) {
	_, err := c.headers()
	p.Add(err != nil, "headers", "holds an entry that is not a header", "write each as 'Name: value'")
	p.Keys("api_key", c.APIKey)
	if u, err := url.Parse(c.BaseURL); err == nil && u.Scheme == "https" && !config.Loopback(u.Hostname()) {
		p.RequireSecret("api_key", c.APIKey, "the key of "+u.Hostname())
	}
}

// Connections returns the connection to the endpoint.
func (c Config) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", c.BaseURL, "api_key", c.APIKey)}
}

// headers returns Headers by name.
func (c Config) headers() (map[string]string, error) {
	headers := map[string]string{}
	for _, h := range c.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.ContainsAny(name, " \t") {
			return nil, errors.New("an entry of llm.headers is not a header: write each as 'Name: value'")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// A Guard decides what may be sent: only redacted text leaves the process (security 9.5.5).
// Its errors quote no content.
type Guard interface {
	// VerifyTexts returns an error for a text that the current pipeline did not make.
	VerifyTexts(texts ...redaction.Text) error
	// Check returns an error for JSON that may not be sent.
	Check(body []byte) error
}

// An Endpoint is the connection to one endpoint. It is safe for concurrent use.
type Endpoint struct {
	lg       *slog.Logger
	cfg      Config
	base     *url.URL
	guard    Guard
	http     *http.Client
	client   *openai.Client
	headers  map[string]string
	keyInUse atomic.Value // string: "new", "old" or "none", as last logged

	probing sync.Mutex // held during a probe
	mu      sync.Mutex // guards the fields below
	habits  map[string]habits
	dialect dialect
	context int // tokens that the server reports to read in one call, 0 if it reports none
	probed  bool
	silent  time.Time // when the endpoint last did not answer a probe; zero if it always did
}

// New returns an endpoint whose requests are checked by guard. It makes no call. Its errors
// have class [failure.ConfigInvalid].
func New(lg *slog.Logger, guard Guard, cfg Config) (*Endpoint, error) {
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	headers, err := cfg.headers()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint has no guard: pass the redaction pipeline")
	}
	e := &Endpoint{lg: lg, cfg: cfg, base: base, guard: guard, headers: headers, habits: map[string]habits{}, dialect: dialectOf(cfg.Dialect, base.Hostname())}
	e.cfg.KeyHeader = cmp.Or(cfg.KeyHeader, e.dialect.KeyHeader)
	e.http = &http.Client{
		Transport: &transport{e, http.DefaultTransport.(*http.Transport).Clone()},
		// A redirect would send the change to a host that is not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client := openai.DefaultConfig("") // the transport adds the key
	client.HTTPClient = e.http
	client.BaseURL, _, _ = strings.Cut(base.String(), "?")
	client.APIVersion = base.Query().Get("api-version")
	e.client = openai.NewClientWithConfig(client)
	return e, nil
}

// azureQuery matches the only query that is part of a base URL, and so of every request.
var azureQuery = regexp.MustCompile(`^(?:api-version=[0-9a-z-]+)?$`)

// parseBaseURL returns an error without the URL, which may hold a password.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Fragment != "" || !azureQuery.MatchString(u.RawQuery) {
		return nil, errors.New("base URL of the model endpoint is missing or invalid: want a form like https://host/v1, without a user or password, or with ?api-version=VERSION for Azure")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// A Format is the format that an answer is asked for in.
type Format string

// The formats, most reliable first.
const (
	FormatSchema Format = "json_schema" // decoding constrained by the schema
	FormatObject Format = "json_object" // any JSON object
	FormatText   Format = "text"        // any text
)

var formats = []Format{FormatSchema, FormatObject, FormatText}

// A Request is one question to a model.
type Request struct {
	Model        string
	System, User redaction.Text // System may be empty
	Tokens       int            // of both, estimated
	MaxTokens    int            // of the answer
	// Format is the best format to ask for; the endpoint may get a lesser one. Schema is the
	// JSON schema of FormatSchema, and Name its name.
	Format Format
	Name   string
	Schema json.RawMessage
	// Fields are other fields of the request, such as temperature. They replace those of
	// the same name.
	Fields map[string]any
	// Whole is set if the answer is not to be streamed.
	Whole bool
}

// Ask sends r and returns the answer. If the endpoint refuses a field of r, or its answer
// limit, Ask sends r without it or with less, and remembers that if it succeeds. If it fails
// within the answer, the answer has what was received. An error of ctx is returned
// unchanged.
func (e *Endpoint) Ask(ctx context.Context, r Request) (Answer, error) {
	if err := e.guard.VerifyTexts(r.System, r.User); err != nil {
		return Answer{}, err
	}
	known := e.habitsOf(r.Model)
	for h := known; ; {
		if h.answer > 0 {
			r.MaxTokens = min(r.MaxTokens, h.answer)
		}
		answer, err := e.exchange(ctx, r, h)
		if err == nil && !answer.chosen && !answer.Early { // some servers answer nothing to a format that they lack
			if h.formatOf(r) != FormatText {
				h.drop("response_format", r)
				continue
			}
			return answer, answer.Fail(failure.SchemaInvalid, errMalformed)
		}
		if err == nil {
			e.remember(ctx, r.Model, known, h)
			return answer, nil
		}
		var again bool
		if h, r.MaxTokens, again = h.after(err, r); !again {
			if h.context != known.context { // true whether the retry helps or not
				now := e.habitsOf(r.Model)
				known.context = h.context
				e.remember(ctx, r.Model, now, known)
			}
			return answer, err
		}
	}
}

// totalTimeouts is the number of timeouts after which an answer that still arrives is given
// up: an endpoint that sends a byte now and then must not hold a worker.
const totalTimeouts = 4

// errStalled is the cause of a call that was canceled because the endpoint was silent.
var errStalled = errors.New("the endpoint was silent")

// exchange makes one call. It ends a call whose endpoint is silent for the timeout of e,
// takes a multiple of it in all, or sends more than twice the granted tokens.
func (e *Endpoint) exchange(ctx context.Context, r Request, h habits) (Answer, error) {
	bound, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(totalTimeouts*e.cfg.Timeout, func() { cancel(errStalled) }).Stop()
	silence := time.AfterFunc(e.cfg.Timeout, func() { cancel(errStalled) })
	defer silence.Stop()
	c := &call{fields: h.fields(r), sealed: []string{r.System.String(), r.User.String()}, alive: func() { silence.Reset(e.cfg.Timeout) }}

	request := openai.ChatCompletionRequest{Model: r.Model, StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
	for i, role := range []string{openai.ChatMessageRoleSystem, openai.ChatMessageRoleUser} {
		if c.sealed[i] != "" {
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: role, Content: c.sealed[i]})
		}
	}
	if format := h.formatOf(r); format != FormatText {
		request.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatType(format)}
		if format == FormatSchema {
			request.ResponseFormat.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{Name: r.Name, Schema: r.Schema, Strict: true}
		}
	}
	var answer Answer
	stream, err := e.client.CreateChatCompletionStream(context.WithValue(bound, callKey{}, c), request)
	if err == nil {
		defer func() { _ = stream.Close() }()
		if c.answer != nil {
			err = answer.receive(c.answer, c.header, 2*r.MaxTokens+1_000)
		}
	}
	answer.Limit, answer.Begun = r.MaxTokens, c.status == http.StatusOK
	switch {
	case ctx.Err() != nil && err != nil:
		return answer, ctx.Err()
	case errors.Is(context.Cause(bound), errStalled) && err != nil:
		return answer, failure.Errorf(failure.NetworkTimeout, "model endpoint was silent for %s, or its answer took longer than %d times as long", e.cfg.Timeout, totalTimeouts)
	case c.refused() != nil: // go-openai takes a redirect for an answer
		err = c.refused()
	case c.status == 0 && errors.Is(err, openai.ErrChatCompletionInvalidModel):
		err = failure.Errorf(failure.ConfigInvalid, "model %s does not answer chat completions: set llm.model", r.Model)
	case err != nil:
		err = broken(err)
	}
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Class == failure.NotFound { // the endpoint lacks path or model
		e.Class = failure.ConfigInvalid
	}
	return answer, err
}

// at returns the URL of a path below the base URL.
func (e *Endpoint) at(path string) string {
	base, query, _ := strings.Cut(e.base.String(), "?")
	switch {
	case query == "":
		return base + path
	case strings.Contains(path, "?"):
		return base + path + "&" + query
	}
	return base + path + "?" + query
}

// ErrEarly is why an answer cannot be used whose stream ended early.
var ErrEarly = errors.New("connection to the model endpoint ended before the answer was complete")

// malformed is the error of an answer that is not one of the API.
func malformed(h http.Header) error {
	return Answer{RequestID: requestID(h)}.Fail(failure.SchemaInvalid, errMalformed)
}

var errMalformed = errors.New("answer of the model is unusable: it violates the API")

// Fail returns the error of an answer that was received in full.
func (a Answer) Fail(class failure.Class, err error) error {
	return &failure.Error{Class: class, Err: err, RequestID: a.RequestID}
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:=-]{0,99}$`)

// requestIDHeaders are the headers in which the common vendors report a request's ID.
var requestIDHeaders = []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid", "X-Ds-Trace-Id", "Msh-Request-Id", "X-Generation-Id", "X-Goog-Request-Id", "X-Litellm-Call-Id", "Nvcf-Reqid", "Cf-Ray"}

// requestID returns the endpoint's request ID if it has the form of an ID.
func requestID(h http.Header) string {
	for _, name := range requestIDHeaders {
		if id := h.Get(name); requestIDPattern.MatchString(id) {
			return id
		}
	}
	return ""
}

// Describe probes the endpoint and returns how requests to model are made.
func (e *Endpoint) Describe(ctx context.Context, model string) string {
	e.Probe(ctx)
	h := e.habitsOf(model)
	e.mu.Lock()
	defer e.mu.Unlock()
	text := fmt.Sprintf("dialect %s: answers limited by %s", e.dialect.Name, h.limitField())
	if e.context > 0 {
		text += fmt.Sprintf(", the server reports a context of %d tokens", e.context)
	}
	return text
}
