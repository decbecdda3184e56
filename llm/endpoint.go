package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// An Endpoint is the way to one model endpoint for packages that ask for other
// things than a review: it has the guard, the keys and the error classes of a
// [Reviewer]. It is safe for concurrent use and tries nothing twice.
type Endpoint struct {
	cfg  EndpointConfig
	wire *wire
}

// EndpointConfig says where an endpoint is and how it is spoken to.
type EndpointConfig struct {
	// BaseURL is where the paths of its API begin. Required; with http:// the
	// key and all text cross the network readable.
	BaseURL string
	// APIKey is sent with every request. Unset for servers that want none.
	APIKey secret.Value
	// APIKeyOld is tried where APIKey is not accepted. Default none.
	APIKeyOld secret.Value
	// KeyHeader is the header that takes the key. Default "", as a bearer token.
	KeyHeader string
	// Timeout bounds one call. Default 5 minutes.
	Timeout time.Duration
	// TransferTimeout bounds the way of one file. Default 15 minutes.
	TransferTimeout time.Duration
}

const defaultTransferTimeout = 15 * time.Minute

// NewEndpoint returns the endpoint; guard sees all that is sent to it. It makes
// no call. Its errors have class [failure.ConfigInvalid].
func NewEndpoint(lg *slog.Logger, guard guard, cfg EndpointConfig) (*Endpoint, error) {
	if guard == nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint has no guard: hand it the redaction pipeline")
	}
	if err := validateBaseURL(cfg.BaseURL); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.TransferTimeout = cmp.Or(cfg.TransferTimeout, defaultTransferTimeout)
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	keys := &keyring{lg: lg, key: cfg.APIKey, old: cfg.APIKeyOld, header: cfg.KeyHeader}
	return &Endpoint{cfg: cfg, wire: newWire(guard, keys)}, nil
}

// OpenAI returns a client of the endpoint. The errors of its calls are for
// [Endpoint.Classify]; their own text quotes the endpoint.
func (e *Endpoint) OpenAI() *openai.Client {
	client := openai.DefaultConfig("") // the keyring signs
	client.BaseURL = e.cfg.BaseURL
	client.HTTPClient = e.wire
	return openai.NewClientWithConfig(client)
}

// Bound returns ctx with the time limit of one call.
func (e *Endpoint) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.cfg.Timeout)
}

// Classify turns an error of a call into one with a class, which quotes nothing
// of what the endpoint said. ctx is the caller's, without the limit of the call;
// h is the header of the answer, nil if there is none.
func (e *Endpoint) Classify(ctx context.Context, err error, h http.Header) error {
	return classify(ctx, err, h, e.cfg.Timeout)
}

// Post sends in as JSON and decodes the answer into out, for formats that
// [Endpoint.OpenAI] does not speak. Its errors have a class.
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
	resp, err := e.wire.Do(req)
	if err != nil {
		return e.Classify(ctx, err, nil)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusalOf(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return malformed(resp.Header, "it is not what the API promises")
	}
	return nil
}

func (e *Endpoint) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.cfg.BaseURL+path, body)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "make a request to the model endpoint: its path is not possible")
	}
	return req, nil
}

// Refused is the class of what an endpoint said about one request of a batch:
// an HTTP status, and its error's code, type and message, of which nothing is
// repeated that is not listed.
func Refused(status int, code, kind, message string) error {
	return answered(status, knownCode(&openai.APIError{HTTPStatusCode: status, Code: code, Type: kind, Message: message}), nil)
}

// refusalOf reads an answer that is an error, as OpenAI or Google word it.
func refusalOf(resp *http.Response) error {
	var body struct {
		Error struct {
			Code    any    `json:"code"`
			Type    string `json:"type"`
			Message string `json:"message"`
			Details []struct {
				Reason string `json:"reason"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAnswerBytes)).Decode(&body) // what is not JSON says no more than its status
	e := body.Error
	for _, d := range e.Details {
		if _, known := codes[d.Reason]; known {
			e.Code = d.Reason
		}
	}
	said := &openai.APIError{HTTPStatusCode: resp.StatusCode, Code: e.Code, Type: e.Type, Message: e.Message}
	return answered(resp.StatusCode, knownCode(said), resp.Header)
}
