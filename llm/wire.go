package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"syscall"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
)

// maxAnswerBytes bounds what is read of one answer; the longest real ones are
// a few hundred kilobytes.
const maxAnswerBytes = 8 << 20

// guard decides what may leave (security 9.5.5). Its errors block and name no
// content.
type guard interface {
	// Verify refuses a change that the current redaction did not let pass.
	Verify(c redaction.Change) error
	// Check takes the last look at a request body before it is sent.
	Check(body []byte) error
}

// wire is the only way to the endpoint. It hands every request body to the
// guard and sends exactly the bytes the guard saw; it reads answers whole, so
// that a broken connection is told from a malformed answer. Its errors are
// classified and quote nothing.
type wire struct {
	guard  guard
	client *http.Client
	keys   *keyring
}

func newWire(g guard, keys *keyring) *wire {
	return &wire{guard: g, keys: keys, client: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would send the change to a host nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements the HTTP client that go-openai wants.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	if err := w.inspect(req); err != nil {
		return nil, err
	}
	resp, err := w.keys.send(w.client, req)
	if err != nil {
		return nil, connectionError(req.Context(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, connectionError(req.Context(), err)
	}
	switch {
	case len(body) > maxAnswerBytes:
		return nil, failure.Errorf(failure.SchemaInvalid, "answer of the model endpoint is over %d bytes: check that the base URL names a model endpoint", maxAnswerBytes)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint answered with a redirect (%d), which is not followed: set the base URL to the place it redirects to", resp.StatusCode)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func (w *wire) inspect(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return failure.Errorf(failure.InvariantViolated, "read the body of the model request: %w", err)
	}
	if err := w.guard.Check(body); err != nil {
		return failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: %w", err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	return nil
}

// connectionError classifies an error of the transport. Its text is ours: the
// transport's may quote the answer.
func connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return failure.Errorf(failure.ConfigInvalid, "certificate of the model endpoint is not trusted: install its authority or correct the base URL")
	}
	class, ok := failure.NetworkClass(err)
	if !ok {
		class = failure.NetworkUnreachable
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return failure.Errorf(class, "connection to the model endpoint failed: %w", errno)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return failure.Errorf(class, "connection to the model endpoint ended before its answer")
	}
	return failure.Errorf(class, "connection to the model endpoint failed: check its name, port and protocol")
}
