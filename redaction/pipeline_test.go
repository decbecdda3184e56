package redaction

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/secret"
)

// testKey keys the tags in tests; it opens nothing.
var testKey = secret.New(strings.Repeat("k", 32))

func newTestPipeline(tb testing.TB, cfg Config) *Pipeline {
	tb.Helper()
	cfg.Key = testKey
	p, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
