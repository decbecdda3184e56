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

// The SDK's line of a failed attempt is left out where ours says the same, else it is
// a warning; an error is what the SDK says of anything else.
func TestTheSDKRepeatsNothing(t *testing.T) {
	t.Parallel()
	verdict := temporal.NewApplicationErrorWithOptions("away", "AUTH_DENIED", temporal.ApplicationErrorOptions{NonRetryable: true})
	for name, tt := range map[string]struct {
		message string
		err     error
		of      string
		want    string // the level, empty if nothing is said
	}{
		"an attempt that failed":           {"Activity error.", verdict, "Fetch", ""},
		"one that was canceled":            {"Activity error.", temporal.NewCanceledError(), "Fetch", ""},
		"a probe, which we do not log":     {"Activity error.", verdict, "Probe", "WARN"},
		"an attempt that could not begin":  {"Activity error.", errors.New("unable to decode the input"), "Fetch", "WARN"},
		"an attempt that brought it down":  {"Activity panic.", verdict, "Fetch", "ERROR"},
		"one that nothing is known to say": {"Activity error.", nil, "Fetch", "WARN"},
	} {
		var out bytes.Buffer
		lg := log.NewStructuredLogger(slog.New(sdkLines{slog.NewTextHandler(&out, nil)}))
		log.With(lg, "Namespace", "n").Error(tt.message, "ActivityType", tt.of, "Attempt", 1, "Error", tt.err)
		said := out.String()
		if tt.want == "" && said != "" || tt.want != "" && !(strings.Contains(said, "level="+tt.want) && strings.Contains(said, "Namespace=n")) {
			t.Errorf("%s: logged %q, want level %q", name, said, tt.want)
		}
	}
}
