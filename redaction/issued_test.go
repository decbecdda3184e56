package redaction

import (
	"strings"
	"testing"
)

// Only texts that a pipeline of this version made in this process pass.
func TestIssued(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	issued := p.text("redacted")
	changed, older := issued, issued
	changed.s, older.by = "password = hunter2", "an older version"
	for name, tt := range map[string]struct {
		text Text
		ok   bool
	}{
		"issued": {issued, true}, "empty": {Text{}, true}, "made by hand": {Text{s: "x"}, false}, "changed": {changed, false}, "older": {older, false},
	} {
		if ok := p.issued(tt.text); ok != tt.ok {
			t.Errorf("%s: passes is %t", name, ok)
		}
	}
}

// A request body may have exactly the largest size.
func TestCheckOfTheLargestBody(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{MaxBytes: 64})
	for size, ok := range map[int]bool{64: true, 65: false} {
		if err := p.Check([]byte(`"` + strings.Repeat("a", size-2) + `"`)); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
