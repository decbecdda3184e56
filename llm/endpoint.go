package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// An Endpoint is the connection to one model endpoint: it has the guard, the
// keys and the error classes. It is safe for concurrent use and retries nothing.
type Endpoint struct {
	lg       *slog.Logger
	cfg      EndpointConfig
	headers  map[string]string
	base     *url.URL
	guard    guard
	client   *http.Client
	keyInUse atomic.Value // string: "new", "old" or "none", as last logged
}

// EndpointConfig configures an [Endpoint].
type EndpointConfig struct {
	// OpenAI-compatible endpoint. With http to another host no key is sent, and
	// allow_cleartext must name llm. For Azure, https://NAME.openai.azure.com/openai/v1,
	// or the URL of the deployment with ?api-version=VERSION.
	BaseURL string `yaml:"base_url" default:"https://api.openai.com/v1" required:"the URL of the endpoint" check:"http-url"`
	// API key of the endpoint. Unset for a server on this host without
	// authentication.
	APIKey secret.Value `yaml:"api_key" env:"OPENAI_API_KEY"`
	// Previous key, used during a rotation if the endpoint rejects the new one.
	APIKeyOld secret.Value `yaml:"api_key_old" env:"OPENAI_API_KEY_OLD"`
	// KeyHeader is the header of the key. Default "": a bearer token.
	KeyHeader string
	// HTTP headers of every request, each as 'Name: value', without secrets.
	Headers []string `yaml:"headers"`
	// Longest silence of the endpoint during a call, before or within its answer. A call
	// takes at most four times as long.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
	// TransferTimeout bounds the transfer of one file. Default 15 minutes.
	TransferTimeout time.Duration
}

// Check implements the checks of package config. http to another host is a private server
// without a key; https is a provider.
func (c EndpointConfig) Check(p *config.Problems) {
	_, err := c.headers()
	p.Add(err != nil, "headers", "holds an entry that is not a header", "write each as 'Name: value'")
	p.Replacement("api_key_old", c.APIKeyOld, "api_key", c.APIKey)
	if u, err := url.Parse(c.BaseURL); err == nil && u.Scheme == "https" && !config.Loopback(u.Hostname()) {
		p.RequireSecret("api_key", c.APIKey, "the key of "+u.Hostname())
	}
}

// Connections returns the connection to the endpoint.
func (c EndpointConfig) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", c.BaseURL, "api_key", c.APIKey)}
}

// headers returns Headers by name.
func (c EndpointConfig) headers() (map[string]string, error) {
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

const defaultTransferTimeout = 15 * time.Minute

// NewEndpoint returns an endpoint whose requests are checked by guard. It makes
// no call. Its errors have class [failure.ConfigInvalid].
func NewEndpoint(lg *slog.Logger, guard guard, cfg EndpointConfig) (*Endpoint, error) {
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint has no guard: pass the redaction pipeline")
	}
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	headers, err := cfg.headers()
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	cfg.TransferTimeout = cmp.Or(cfg.TransferTimeout, defaultTransferTimeout)
	base.Path = strings.TrimRight(base.Path, "/")
	client := &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would send the change to a host that is not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Endpoint{lg: lg, cfg: cfg, headers: headers, base: base, guard: guard, client: client}, nil
}

// azureQuery matches the only query that is part of a base URL, and so of every request.
var azureQuery = regexp.MustCompile(`^api-version=[0-9a-z-]+$`)

// parseBaseURL returns errors without the URL, which may hold a password.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, fmt.Errorf("base URL of the model endpoint is missing: set it")
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("base URL of the model endpoint is invalid: want a form like https://host/v1")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("base URL of the model endpoint: want https:// or http://")
	case u.User != nil:
		return nil, fmt.Errorf("base URL of the model endpoint holds a user or password: use the API key")
	case u.Fragment != "" || u.RawQuery != "" && !azureQuery.MatchString(u.RawQuery):
		return nil, fmt.Errorf("base URL of the model endpoint holds a query or fragment: want a form like https://host/v1, or ?api-version=VERSION for Azure")
	}
	return u, nil
}

// at returns the URL of a path below the base URL.
func (e *Endpoint) at(path string) string {
	base := *e.base
	base.RawQuery = ""
	sign := "?"
	switch {
	case e.base.RawQuery == "":
		sign = ""
	case strings.Contains(path, "?"):
		sign = "&"
	}
	return base.String() + path + sign + e.base.RawQuery
}

// Call sends in as JSON, unless it is nil, and decodes the answer into out. It returns the
// header of the response. Its errors have a class and quote nothing of the endpoint's
// text but a listed code.
func (e *Endpoint) Call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	call, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	h, err := e.call(call, method, e.at(path), in, out)
	return h, timed(ctx, e.cfg.Timeout, err)
}

// timed names the limit in the error of an exchange that did not end because of ctx.
func timed(ctx context.Context, limit time.Duration, err error) error {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("ask the model: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Errorf(failure.NetworkTimeout, "exchange with the model endpoint took longer than %s: %w", limit, context.DeadlineExceeded)
	}
	return err
}

func (e *Endpoint) call(ctx context.Context, method, target string, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, failure.Errorf(failure.InvariantViolated, "encode the model request: %w", err)
		}
	}
	resp, err := e.send(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(limited(resp.Body))
	if err != nil {
		return nil, connectionError(ctx, err)
	}
	if json.Unmarshal(answer, out) != nil {
		return nil, malformed(resp.Header)
	}
	return resp.Header, nil
}
