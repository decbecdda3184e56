package provider

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// No line of a result file causes a panic. A decoded line has an item and either an answer
// or an error with a class that quotes nothing.
func FuzzResultLine(f *testing.F) {
	for _, seed := range []string{
		`{"custom_id":"a","response":{"status_code":200,"body":{"choices":[{"finish_reason":"stop","message":{"content":"{\"rewrite\":\"hi\"}"}}]}},"error":null}`,
		`{"custom_id":"a","response":{"status_code":200,"body":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{\"rewrite\":\"hi\"}"}]}]}}}`,
		`{"custom_id":"a","response":{"status_code":200,"body":{"output":[1,null,{"content":{}},{"content":[2,{"type":7}]}]}}}`,
		`{"custom_id":"a","response":{"status_code":429,"body":{"error":{"code":"rate_limit_exceeded","message":"LEAK"}}}}`,
		`{"custom_id":"a","response":{"status_code":500,"body":"LEAK"}}`,
		`{"custom_id":"a","response":null,"error":{"code":"batch_expired","message":"LEAK"}}`,
		`{"custom_id":"a","response":{"status_code":0,"body":null}}`,
		`{"custom_id":"a"}`, `{"custom_id":7}`, `{}`, `[]`, `null`, ``, `{"custom_id":"a`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []rewrite.AdapterKind{rewrite.OpenAIChat, rewrite.OpenAIResponses} {
			line := adapters[kind].result(raw)
			if line.Err != nil && (line.Answer != "" || failure.ClassOf(line.Err) == failure.Unknown || strings.Contains(line.Err.Error(), "LEAK")) {
				t.Errorf("line %q is read as %+v, %v", raw, line, line.Err)
			}
		}
	})
}

// linesOf returns every line, even after one that is too long.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\nc"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if bytes.HasPrefix(file, []byte("\x1f\x8b")) || bytes.HasPrefix(file, []byte("\ufeff")) {
			t.Skip("compressed, or with a byte order mark")
		}
		var got []string
		for line, err := range linesOf(bytes.NewReader(file)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		var want []string
		for s := range strings.SplitSeq(string(file), "\n") {
			if s = strings.TrimRight(s, "\r"); s != "" {
				want = append(want, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("lines of %q are %q, want %q", file, got, want)
		}
	})
}
