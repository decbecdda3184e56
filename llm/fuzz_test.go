package llm

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
)

// Each answer of an endpoint is an error, or findings that follow the schema, have
// bounded numbers and point into the diff.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":` + strconv.Quote(oneFinding) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":" + strconv.Quote(oneFinding) + "}}]}\n\ndata: [DONE]\n"))
	f.Add([]byte(`{"status":"incomplete","output":[{"type":"message","content":[{"type":"output_text","text":` + strconv.Quote(oneFinding[:90]) + `}]}]}`))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte(strings.Repeat(`{"choices":[`, 1000)))
	loaded, err := loadPrompts(config.Default[Config]())
	if err != nil {
		f.Fatal(err)
	}
	var shown file
	if err := shown.parse(anchorDiff); err != nil {
		f.Fatal(err)
	}
	last := shown.hunks[len(shown.hunks)-1].lines
	end := last[len(last)-1].number
	f.Fuzz(func(t *testing.T, body []byte) {
		var c completion
		if c.read(bytes.NewReader(body), 1_000) != nil {
			return
		}
		o, _, err := c.open(listFindings, 1_000)
		if err != nil {
			return
		}
		remarks, _, err := decodeItems[remark](loaded.items[listFindings], o.items)
		if err != nil {
			return
		}
		for _, m := range remarks {
			if m.Severity == "" || m.Category == "" || m.Title == "" || m.Confidence < 0 || m.Confidence > 1 {
				t.Errorf("a finding is %+v", m)
			}
			if at := anchor(shown.hunks, m.Quote, m.Line); at.start < 0 || at.start > at.end || at.end > end {
				t.Errorf("a finding is at %d to %d of %d lines", at.start, at.end, end)
			}
		}
	})
}
