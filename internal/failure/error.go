package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"
)

// An Error is an error with its class. Its text is shown to people and becomes part
// of Temporal's history: it names the operation and the object, and contains no
// secret, address, diff, prompt or answer of a provider.
type Error struct {
	Class Class
	Err   error
	// RetryAfter is the delay that the server asked for, or zero.
	RetryAfter time.Duration
	// Final marks an error that is not retried although its class is: it needs a
	// person.
	Final bool
	// Upstream is the server's own code, such as "429" or "550 5.1.1", or empty.
	Upstream string
	// RequestID is the server's ID of the failed request, or empty.
	RequestID string
}

// New gives err a class. It hides the class of an error that err wraps.
func New(c Class, err error) *Error { return &Error{Class: c, Err: err} }

// Errorf is [fmt.Errorf] with a class.
func Errorf(c Class, format string, args ...any) *Error {
	return New(c, fmt.Errorf(format, args...))
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error that was classified.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of the outermost [Error] in the chain of err, else its
// [NetworkClass], else Unknown.
func ClassOf(err error) Class {
	if classified, ok := errors.AsType[*Error](err); ok {
		return classified.Class
	}
	if c, ok := NetworkClass(err); ok {
		return c
	}
	return Unknown
}

// Retryable reports whether err may be retried automatically: its class allows it,
// and it is not final.
func Retryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ClassOf(err).Retryable() && !(ok && e.Final)
}

// NetworkClass classifies errors of the packages net, net/http and context; ok is
// false for other errors.
func NetworkClass(err error) (c Class, ok bool) {
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	var op *net.OpError
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return NetworkTimeout, true
	case errors.As(err, &dns):
		return NetworkUnreachable, true
	case errors.As(err, &timeout) && timeout.Timeout():
		return NetworkTimeout, true
	case errors.As(err, &op),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		return NetworkUnreachable, true
	case errors.As(err, &request) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		// The server closed the connection before the end of its header.
		return NetworkUnreachable, true
	}
	return "", false
}
