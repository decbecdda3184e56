package llm

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/endpoint"
)

// Each answer of an endpoint is an error, or findings that follow the schema, have
// bounded numbers and point into the diff.
func FuzzAnswer(f *testing.F) {
	f.Add(oneFinding)
	f.Add("<think>" + noFindings + "</think>" + oneFinding[:90])
	f.Add(strings.Repeat(`{"findings":[`, 1000))
	var shown file
	if err := shown.parse(anchorDiff); err != nil {
		f.Fatal(err)
	}
	last := shown.hunks[len(shown.hunks)-1].lines
	end := last[len(last)-1].number
	f.Fuzz(func(t *testing.T, content string) {
		o, _, err := open(endpoint.Answer{Content: content}, listFindings)
		if err != nil {
			return
		}
		remarks, _, err := decodeItems[remark](t.Context(), itemSchemas()[listFindings], o.items)
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
