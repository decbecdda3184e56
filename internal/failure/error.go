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

// An Error is an error with its class. Its text is shown to people and goes
// into Temporal's history: it names the operation and the object, and never
// holds a secret, an address, a diff, a prompt or a provider's answer.
type Error struct {
	Class Class
	Err   error
	// RetryAfter is how long the other side asked us to wait; zero if it did not.
	RetryAfter time.Duration
	// Final is set where no retry helps until somebody has acted, though others
	// of the class are retried.
	Final bool
	// Upstream is the other side's own code for the failure, such as "429" or
	// "550 5.1.1", for the dead letter; empty if there is none.
	Upstream string
	// RequestID is the other side's id of the failed request, if it gave one.
	RequestID string
}

// New gives err a class. The class of an error inside err no longer counts.
func New(c Class, err error) *Error { return &Error{Class: c, Err: err} }

// Errorf is fmt.Errorf with a class.
func Errorf(c Class, format string, args ...any) *Error {
	return New(c, fmt.Errorf(format, args...))
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error that was classified.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err: that of the outermost [Error] in its
// chain, or what the standard library's own errors say, or Unknown.
func ClassOf(err error) Class {
	if classified, ok := errors.AsType[*Error](err); ok {
		return classified.Class
	}
	if c, ok := NetworkClass(err); ok {
		return c
	}
	return Unknown
}

// Retryable reports whether an automatic retry of err is allowed
// (criticizer-processing 8.1): its class says so, and it is not final.
func Retryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ClassOf(err).Retryable() && !(ok && e.Final)
}

// NetworkClass classifies the errors of the net, net/http and context packages;
// ok is false for any other error. Adapters call it for errors of their transport.
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
		// The server hung up without an answer, or in the middle of its header.
		return NetworkUnreachable, true
	}
	return "", false
}
