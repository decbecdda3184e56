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

// send sends exactly the bytes that the guard has checked, and returns the response with
// its body unread.
func (e *Endpoint) send(ctx context.Context, method, target string, body []byte) (*http.Response, error) {
	if len(body) > 0 {
		if err := e.guard.Check(body); err != nil {
			return nil, blocked(err)
		}
	}
	req, err := newRequest(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	return e.sendSigned(req)
}

func newRequest(ctx context.Context, method, target string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	return req, nil
}

// limited returns a reader that fails after maxAnswerBytes. Answers are read to their end,
// to distinguish a broken connection from a malformed answer.
func limited(body io.ReadCloser) io.Reader { return http.MaxBytesReader(nil, body, maxAnswerBytes) }

func blocked(err error) error {
	return failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: %w", err)
}

// connectionError classifies an error of [http.Client]. It does not wrap err,
// whose text may quote the response.
func connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f, ok := errors.AsType[formError](err); ok {
		return f.err
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
