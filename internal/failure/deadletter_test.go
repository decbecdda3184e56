package failure

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The field names are wire format (processing 8.4).
func TestDeadLetterFieldNames(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(DeadLetter{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"error_class":"","stage":"","last_stack":"","sanitized_context":null,` +
		`"first_failure_at":"0001-01-01T00:00:00Z","last_failure_at":"0001-01-01T00:00:00Z","attempts":0,"hint":""}`
	if string(got) != want {
		t.Errorf("payload is %s\nwant %s", got, want)
	}
}

func TestNewReport(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	scrub := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") }
	classified := &Error{
		Class: RateLimited, Err: errors.New("model said hunter2"), Upstream: "429 hunter2", RequestID: "req hunter2",
	}
	for name, tt := range map[string]struct {
		err  error
		want Report
	}{
		"every text is scrubbed": {
			fmt.Errorf("llm: %w", classified),
			Report{RateLimited, "llm: model said [masked]", "429 [masked]", "req [masked]", 3, 0, at, at},
		},
		"an unclassified error has no upstream": {
			errors.New("odd hunter2"), Report{Class: Unknown, Stack: "odd [masked]", Attempt: 3, At: at, FirstAt: at},
		},
	} {
		if got := NewReport(tt.err, 3, at, scrub); got != tt.want {
			t.Errorf("%s: report is %+v\nwant %+v", name, got, tt.want)
		}
	}
}

// A failure must fit into the history, whatever the size of its texts.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("é", 4<<20)
	r := NewReport(&Error{Class: Unknown, Err: errors.New("x" + huge), Upstream: huge, RequestID: huge},
		1, time.Now(), strings.Clone)
	for name, text := range map[string]string{"stack": r.Stack, "upstream": r.Upstream, "request id": r.RequestID} {
		if len(text) > maxStack+32 || !utf8.ValidString(text) || !strings.HasSuffix(text, " bytes cut]") {
			t.Errorf("%s has %d bytes, valid %t, ends in %q", name, len(text), utf8.ValidString(text), text[len(text)-24:])
		}
	}
	if m := r.Message(); len(m) > maxMessage+32 {
		t.Errorf("message has %d bytes", len(m))
	}
	for _, tt := range []struct {
		text string
		size int
		want string
	}{{"short", 5, "short"}, {"aéé", 2, "a [4 bytes cut]"}, {"aéé", 3, "aé [2 bytes cut]"}, {"\x80\x80", 1, " [2 bytes cut]"}} {
		if got := truncate(tt.text, tt.size); got != tt.want {
			t.Errorf("%q cut to %d bytes is %q, want %q", tt.text, tt.size, got, tt.want)
		}
	}
}

func TestReportMessageIsOneLine(t *testing.T) {
	t.Parallel()
	for stack, want := range map[string]string{"boom\ngoroutine 1\nmain.go:7": "boom", "boom": "boom", "": ""} {
		if got := (Report{Stack: stack}).Message(); got != want {
			t.Errorf("message of %q is %q, want %q", stack, got, want)
		}
	}
}
