package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// An Endpoint is the connection to one model endpoint: it has the guard, the
// keys and the error classes. It is safe for concurrent use and retries nothing.
type Endpoint struct {
	cfg       EndpointConfig
	base      *url.URL
	transport *transport
}

// EndpointConfig configures an [Endpoint].
type EndpointConfig struct {
	// BaseURL is the prefix of the API's paths. Required. With http:// the key and
	// all text cross the network unencrypted.
	BaseURL string
	// APIKey is sent with every request. Unset for servers that need none.
	APIKey secret.Value
	// APIKeyOld is tried if APIKey is refused. Default none.
	APIKeyOld secret.Value
	// KeyHeader is the header of the key. Default "": a bearer token.
	KeyHeader string
	// Headers are sent with every request. Default none.
	Headers map[string]string
	// Timeout bounds one call, and the silence within a streamed one. Default 5 minutes.
	Timeout time.Duration
	// TransferTimeout bounds the transfer of one file. Default 15 minutes.
	TransferTimeout time.Duration
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
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.TransferTimeout = cmp.Or(cfg.TransferTimeout, defaultTransferTimeout)
	base.Path = strings.TrimRight(base.Path, "/")
	keys := &keyring{lg: lg, key: cfg.APIKey, old: cfg.APIKeyOld, header: cfg.KeyHeader, headers: cfg.Headers}
	return &Endpoint{cfg: cfg, base: base, transport: newTransport(guard, keys)}, nil
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
	if e.base.RawQuery == "" {
		return base.String() + path
	}
	return base.String() + path + "?" + e.base.RawQuery
}

// OpenAI returns a client of the endpoint. Pass the errors of its calls to
// [Endpoint.Classify]: their text quotes the endpoint.
func (e *Endpoint) OpenAI() *openai.Client {
	client := openai.DefaultConfig("") // the keyring adds the key
	client.BaseURL = strings.TrimRight(e.cfg.BaseURL, "/")
	client.HTTPClient = e.transport
	return openai.NewClientWithConfig(client)
}

// Bound returns ctx with the timeout of one call.
func (e *Endpoint) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.cfg.Timeout)
}

// Post sends in as JSON and decodes the answer into out, for formats that
// [Endpoint.OpenAI] does not support. Its errors have a class.
func (e *Endpoint) Post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return failure.Errorf(failure.InvariantViolated, "encode the model request: %w", err)
	}
	call, cancel := e.Bound(ctx)
	defer cancel()
	req, err := e.request(call, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.transport.Do(req)
	if err != nil {
		return e.Classify(ctx, err, nil)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return responseError(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return malformed(resp.Header)
	}
	return nil
}

func (e *Endpoint) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.at(path), body)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	return req, nil
}
