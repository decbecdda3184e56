package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// edited is the file of the scripted answers: lines 11 and 12 are added, line 10
// is unchanged, and a line before line 11 is removed.
var edited = review.File{
	DepotPath: "//depot/main/pool.go", Action: review.ActionEdit, Type: "text",
	Diff: "@@ -9,4 +9,5 @@ func (p *Pool) Take() *Conn\n" +
		" \tp.mu.Lock()\n" +
		" \tconn := p.free[len(p.free)-1]\n" +
		"-\tdefer p.mu.Unlock()\n" +
		"+\tp.free = p.free[:len(p.free)-1]\n" +
		"+\ttoken := \"[REDACTED:api_key:0a1b]\"\n" +
		" \treturn conn\n",
}

// answerWith returns an answer with the given findings. Each one is valid except
// for the fields that it sets.
func answerWith(findings ...map[string]any) string {
	list := make([]map[string]any, len(findings))
	for i, f := range findings {
		list[i] = map[string]any{
			"path": "//depot/main/pool.go", "severity": "high", "category": "concurrency", "confidence": 0.9,
			"title": "Lock is never released", "explanation": "The removal of the unlock leaves the pool locked for good.",
			"suggestion": "", "quote": "\tp.free = p.free[:len(p.free)-1]", "line": 11,
		}
		maps.Copy(list[i], f)
	}
	out, _ := json.Marshal(map[string]any{"findings": list})
	return string(out)
}

// answers are faults with which a model answers with contents, one per call.
func answers(contents ...string) (faults []llmsim.Fault) {
	for _, content := range contents {
		faults = append(faults, llmsim.Fault{Kind: llmsim.Scripted, Content: content, Times: 1})
	}
	return faults
}

// scripted reviews with a model whose answers are contents, one per call.
func scripted(t *testing.T, files []review.File, change func(*Config), contents ...string) (review.Draft, simulated, error) {
	t.Helper()
	r := withFaults(t, func(c *Config) {
		c.MinSeverity, c.Concurrency = review.SeverityLow, 1
		if change != nil {
			change(c)
		}
	}, answers(contents...)...)
	d, err := r.review(t, files...)
	return d, r, err
}

// summary returns severity, place and anchor of the findings of a draft.
func summary(d review.Draft) []string {
	var out []string
	for _, f := range d.Findings {
		s := fmt.Sprintf("%s %s:%d-%d %s", f.Severity, f.Path[strings.LastIndex(f.Path, "/")+1:], f.StartLine, f.EndLine, f.Anchor)
		for _, p := range f.Places {
			s += fmt.Sprintf(" +%s:%d", p.Path[strings.LastIndex(p.Path, "/")+1:], p.StartLine)
		}
		out = append(out, s)
	}
	return out
}

type fields = map[string]any

// Errors of the model are corrected or dropped; drops are counted by reason.
func TestReportedFindings(t *testing.T) {
	t.Parallel()
	const good = "high pool.go:11-11 added"
	for name, test := range map[string]struct {
		answer  string
		want    []string
		dropped map[review.DropReason]int
	}{
		"a good finding":                        {answerWith(fields{}), []string{good}, nil},
		"none":                                  {answerWith(), nil, nil},
		"a wrong line":                          {answerWith(fields{"line": 4711}), []string{good}, nil},
		"the line of removed code":              {answerWith(fields{"line": 10}), []string{good}, nil},
		"no line":                               {answerWith(fields{"line": 0}), []string{good}, nil},
		"a fenced answer":                       {"```json\n" + answerWith(fields{}) + "\n```", []string{good}, nil},
		"a fenced quote":                        {answerWith(fields{"quote": "```go\n\tp.free = p.free[:len(p.free)-1]\n```"}), []string{good}, nil},
		"a quote with numbers and marks":        {answerWith(fields{"quote": "    11 + \tp.free = p.free[:len(p.free)-1]"}), []string{good}, nil},
		"prose around":                          {"I looked at `Take() {`.\n\n" + answerWith(fields{}) + "\n\nFix {it} soon!", []string{good}, nil},
		"an object in a thought":                {"<think>maybe {\"findings\":[]}?</think>" + answerWith(fields{}), []string{good}, nil},
		"a quote of removed code":               {answerWith(fields{"quote": "\tdefer p.mu.Unlock()"}), []string{"high pool.go:0-0 removed"}, nil},
		"code that does not exist":              {answerWith(fields{"quote": "p.mu.RUnlock()"}), []string{"high pool.go:0-0 file"}, nil},
		"a path that does not exist":            {answerWith(fields{"path": "//depot/main/other.go"}), []string{good}, nil},
		"neither path nor quote":                {answerWith(fields{"path": "//depot/main/other.go", "quote": "other()"}, fields{}), []string{good}, map[review.DropReason]int{review.DropUnknownPath: 1}},
		"untouched code, severe":                {answerWith(fields{"quote": "\tp.mu.Lock()"}), []string{"high pool.go:9-9 context"}, nil},
		"untouched code, not severe":            {answerWith(fields{"quote": "\tp.mu.Lock()", "severity": "medium"}), nil, map[review.DropReason]int{review.DropOutside: 1}},
		"a placeholder taken for code":          {answerWith(fields{"quote": "\ttoken := \"[REDACTED:api_key:0a1b]\"", "category": "correctness", "title": "The placeholder is no valid token"}), []string{"high pool.go:12-12 added"}, nil},
		"a placeholder that is not in the code": {answerWith(fields{"quote": "x = [REDACTED:api_key:ffff]"}), nil, map[review.DropReason]int{review.DropMarker: 1}},
		"a defect beside a placeholder":         {answerWith(fields{"quote": "\ttoken := \"[REDACTED:api_key:0a1b]\"", "category": "correctness"}), []string{"high pool.go:12-12 added"}, nil},
		"a secret in the code":                  {answerWith(fields{"quote": "\ttoken := \"[REDACTED:api_key:0a1b]\"", "category": "security"}), []string{"high pool.go:12-12 added"}, nil},
		"a cut mark taken for code":             {answerWith(fields{"quote": "x [line cut: 17 bytes more]"}), nil, map[review.DropReason]int{review.DropMarker: 1}},
		"a fence of the prompt taken for code":  {answerWith(fields{"quote": "=== end change 0123456789abcdef ==="}), nil, map[review.DropReason]int{review.DropMarker: 1}},
		"the head of a hunk taken for code":     {answerWith(fields{"quote": "@@ func (p *Pool) Take() *Conn"}), nil, map[review.DropReason]int{review.DropMarker: 1}},
		"a suggestion of the same code":         {answerWith(fields{"suggestion": "```\np.free = p.free[:len(p.free)-1]\n```"}), nil, map[review.DropReason]int{review.DropNoChange: 1}},
		"a replacement by the same code":        {answerWith(fields{"replacement": "\tp.free = p.free[:len(p.free)-1]\n"}), nil, map[review.DropReason]int{review.DropNoChange: 1}},
		"a nitpick":                             {answerWith(fields{"severity": "low", "category": "maintainability"}), nil, map[review.DropReason]int{review.DropNitpick: 1}},
		"the same twice":                        {answerWith(fields{}, fields{}), []string{good}, map[review.DropReason]int{review.DropDuplicate: 1}},
		"the same in other words":               {answerWith(fields{}, fields{"title": "Pool stays locked", "severity": "medium"}), []string{good}, map[review.DropReason]int{review.DropDuplicate: 1}},
		"the same of another category":          {answerWith(fields{}, fields{"category": "correctness", "title": "The lock is never released"}), []string{good}, map[review.DropReason]int{review.DropDuplicate: 1}},
		"two defects of one line": {
			answerWith(fields{}, fields{"category": "correctness", "title": "Panics on an empty pool"}), []string{good, good}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _, err := scripted(t, []review.File{edited}, nil, test.answer)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(d); !slices.Equal(got, test.want) {
				t.Errorf("shows %q, want %q", got, test.want)
			}
			if len(d.Dropped)+len(test.dropped) > 0 && !reflect.DeepEqual(d.Dropped, test.dropped) {
				t.Errorf("dropped %v, want %v", d.Dropped, test.dropped)
			}
		})
	}
}

// A mark of the prompt in a line of code does not keep findings on the line out of the draft.
func TestAuthorsCutMark(t *testing.T) {
	t.Parallel()
	const path, code = "//depot/a.go", "\trun(input) // [line cut: 17 bytes more]"
	d, _, err := scripted(t, []review.File{added(path, "one()", code)}, nil, answerWith(fields{"path": path, "quote": code}))
	if got := summary(d); err != nil || !slices.Equal(got, []string{"high a.go:2-2 added"}) {
		t.Errorf("shows %q, dropped %v, %v", got, d.Dropped, err)
	}
}

// A replacement reaches the draft only if it can be applied to what the change shows; one
// that cannot is counted, and the finding stays. The explanation begins with the trigger.
func TestTriggerAndReplacement(t *testing.T) {
	t.Parallel()
	const code = "\tp.free = p.free[1:]"
	for name, test := range map[string]struct {
		trigger, replacement, explains string
		dropped                        review.DropReason
	}{
		"both":               {"An empty pool.", code, "An empty pool. It panics.", ""},
		"none":               {"", "", "It panics.", ""},
		"fenced":             {"", "```go\n" + code + "\n```", "It panics.", ""},
		"with a placeholder": {"", "\tother := \"[REDACTED:api_key:0a1b]\"", "It panics.", review.DropFixSecret},
		"with a cut mark":    {"", "\ta [line cut: 17 bytes more]", "It panics.", review.DropFixPlace},
		"too long":           {"", strings.Repeat(code+"\n", 200), "It panics.", review.DropFixPlace},
		"with a secret":      {"", "\tkey := \"AKIA" + "Q3EGRJXWNAPLTD5K\"", "It panics.", review.DropFixSecret},
		"of other lines":     {"", "\tif x {\n" + code + "\n", "It panics.", review.DropFixSyntax},
	} {
		d, _, err := scripted(t, []review.File{edited}, nil, answerWith(fields{"trigger": test.trigger, "explanation": "It panics.", "replacement": test.replacement}))
		if err != nil || len(d.Findings) != 1 {
			t.Fatalf("%s: draft %+v, error %v", name, d, err)
		}
		f := d.Findings[0]
		kept := test.dropped == "" && test.replacement != ""
		if f.Explanation != test.explains || f.ReplacementChecked != kept || kept && f.Replacement != code || !kept && f.Replacement != "" {
			t.Errorf("%s: %+v", name, f)
		}
		if test.dropped != "" && d.FixesDropped[test.dropped] != 1 || test.dropped == "" && len(d.FixesDropped) > 0 {
			t.Errorf("%s: dropped %v", name, d.FixesDropped)
		}
	}
}

func TestOneRemarkInManyFilesIsOneFinding(t *testing.T) {
	t.Parallel()
	var files []review.File
	var findings []map[string]any
	for _, name := range []string{"a", "b", "c"} {
		path := "//depot/" + name + ".go"
		files = append(files, added(path, "one()", "\t_ = f.Close() // "+name))
		findings = append(findings, fields{"path": path, "title": "Error of Close is lost", "category": "error_handling", "quote": "_ = f.Close()", "line": 2})
	}
	d, _, err := scripted(t, files, nil, answerWith(findings...))
	if want := []string{"high a.go:2-2 added +b.go:2 +c.go:2"}; err != nil || !slices.Equal(summary(d), want) {
		t.Errorf("shows %q, error %v: want %q", summary(d), err, want)
	}
}

func TestThresholdAndLimit(t *testing.T) {
	t.Parallel()
	var lines []string
	var findings []map[string]any
	for i, severity := range []string{"low", "medium", "critical", "high", "medium"} {
		code := fmt.Sprintf("call%c()", 'a'+i)
		lines = append(lines, code)
		findings = append(findings, fields{"path": "//depot/a.go", "severity": severity, "title": "About " + code, "quote": code})
	}
	d, _, err := scripted(t, []review.File{added("//depot/a.go", lines...)}, func(c *Config) {
		c.MinSeverity, c.MaxFindings = review.SeverityMedium, 3
	}, answerWith(findings...))
	want := []string{"critical a.go:3-3 added", "high a.go:4-4 added", "medium a.go:2-2 added"}
	if err != nil || !slices.Equal(summary(d), want) {
		t.Errorf("shows %q, error %v: want %q", summary(d), err, want)
	}
	if d.Dropped[review.DropMinor] != 1 || d.Dropped[review.DropOverLimit] != 1 {
		t.Errorf("dropped %v", d.Dropped)
	}
}
