package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// The SDK's record of a failed attempt is dropped if the interceptor has logged it,
// and is kept otherwise. Other records keep their level.
func TestSDKLogsFailedAttemptsOnce(t *testing.T) {
	t.Parallel()
	reported := temporal.NewApplicationErrorWithOptions("away", "AUTH_DENIED", temporal.ApplicationErrorOptions{NonRetryable: true})
	for name, tt := range map[string]struct {
		message string
		err     error
		of      string
		want    string // level; empty if nothing is logged
	}{
		"an attempt that failed":          {"Activity error.", reported, "Fetch", ""},
		"one that was canceled":           {"Activity error.", temporal.NewCanceledError(), "Fetch", ""},
		"an attempt that could not begin": {"Activity error.", errors.New("unable to decode the input"), "Fetch", "ERROR"},
		"a panic":                         {"Activity panic.", reported, "Fetch", "ERROR"},
		"no error":                        {"Activity error.", nil, "Fetch", "ERROR"},
	} {
		var out bytes.Buffer
		lg := sdkLogger{log.NewStructuredLogger(slog.New(slog.NewTextHandler(&out, nil)))}
		log.With(lg, "Namespace", "n").Error(tt.message, "ActivityType", tt.of, "Attempt", 1, "Error", tt.err)
		got := out.String()
		if tt.want == "" && got != "" || tt.want != "" && !(strings.Contains(got, "level="+tt.want) && strings.Contains(got, "Namespace=n")) {
			t.Errorf("%s: logged %q, want level %q", name, got, tt.want)
		}
	}
}
