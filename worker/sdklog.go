package main

import (
	"errors"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// An sdkLogger filters the log of the Temporal SDK. The SDK logs an error for
// every failed attempt of an activity. Most attempts are retried, and our
// interceptor has logged them with more detail.
type sdkLogger struct{ log.Logger }

// Error implements [log.Logger].
func (l sdkLogger) Error(message string, pairs ...any) {
	switch {
	case message != "Activity error.":
		l.Logger.Error(message, pairs...)
	case !loggedByInterceptor(pairs):
		l.Warn(message, pairs...)
	}
}

// loggedByInterceptor reports whether the interceptor has logged the attempt. It
// makes every failure an ApplicationError, except those of the SDK itself, such
// as an input that cannot be decoded. It does not log probes, most of which fail.
func loggedByInterceptor(pairs []any) bool {
	classified, probe := false, false
	for i := 0; i+1 < len(pairs); i += 2 {
		switch pairs[i] {
		case "Error":
			err, _ := pairs[i+1].(error)
			_, isApplication := errors.AsType[*temporal.ApplicationError](err)
			classified = isApplication || temporal.IsCanceledError(err)
		case "ActivityType":
			probe = pairs[i+1] == "Probe"
		}
	}
	return classified && !probe
}
