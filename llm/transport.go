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

// maxAnswerBytes bounds one response; real ones have a few hundred kilobytes at
// most.
const maxAnswerBytes = 8 << 20

// guard decides what may be sent: only redacted text leaves the process
// (security 9.5.5). Its errors quote no content.
type guard interface {
	// Verify returns an error for a change that the current pipeline did not make.
	Verify(c redaction.Change) error
	// Check returns an error for a request body that may not be sent.
	Check(body []byte) error
}

// A transport is the only connection to the endpoint. It sends exactly the bytes
// that the guard has checked. It reads responses to their end, to distinguish a
// broken connection from a malformed answer. Its errors have a class and quote
// nothing.
type transport struct {
	guard  guard
	client *http.Client
	keys   *keyring
}

func newTransport(g guard, keys *keyring) *transport {
	return &transport{guard: g, keys: keys, client: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would send the change to a host that is not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// open sends req and returns the response with its body unread.
func (t *transport) open(req *http.Request) (*http.Response, error) {
	if err := t.check(req); err != nil {
		return nil, err
	}
	resp, err := t.keys.send(t.client, req)
	if err != nil {
		return nil, connectionError(req.Context(), err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint answered with a redirect (%d), which is not followed: set the base URL to the redirect's target", resp.StatusCode)
	}
	return resp, nil
}

// limited returns a reader that fails after maxAnswerBytes.
func limited(body io.ReadCloser) io.Reader { return http.MaxBytesReader(nil, body, maxAnswerBytes) }

// check has the guard check the body and makes it readable again.
func (t *transport) check(req *http.Request) error {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return failure.Errorf(failure.InvariantViolated, "read the body of the model request: %w", err)
	}
	if err := t.guard.Check(body); err != nil {
		return blocked(err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	return nil
}

func blocked(err error) error {
	return failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: %w", err)
}

// connectionError classifies an error of [http.Client]. It does not wrap err,
// whose text may quote the response.
func connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return failure.Errorf(failure.SchemaInvalid, "answer of the model endpoint is over %d bytes: check that the base URL is that of a model endpoint", maxAnswerBytes)
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
		return failure.Errorf(class, "connection to the model endpoint ended before the answer was complete")
	}
	return failure.Errorf(class, "connection to the model endpoint failed: check its name, port and protocol")
}
