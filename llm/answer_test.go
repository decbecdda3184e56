package llm

import (
	"strings"
	"testing"
)

const (
	noFindings = `{"findings":[]}`
	oneFinding = `{"findings":[{"path":"//depot/a.go","severity":"high","category":"correctness","confidence":0.9,` +
		`"title":"Off by one","explanation":"The loop reads behind the end.","suggestion":"","quote":"for i := 0; i <= n; i++ {","line":3}]}`
)

func TestParseTakesTheObjectOutOfWhatIsAroundIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content  string
		findings int
	}{
		"plain":                            {oneFinding, 1},
		"empty list":                       {noFindings, 0},
		"blanks around":                    {"\n\t " + oneFinding + " \n", 1},
		"code fence":                       {"```json\n" + oneFinding + "\n```", 1},
		"prose around":                     {"Here it is:\n" + oneFinding + "\nThat is all.", 1},
		"thinking before, with an object":  {"<think>if {\"findings\":[]} then</think>\n" + oneFinding, 1},
		"thinking without its beginning":   {"so { it } is\n</think>" + oneFinding, 1},
		"end of thinking in a quote":       {strings.Replace(oneFinding, "Off by one", "Off </think> by one", 1), 1},
		"the same, in a code fence":        {"```\n" + strings.Replace(oneFinding, "Off by one", "</think>", 1) + "```", 1},
		"line number as a decimal":         {strings.Replace(oneFinding, `"line":3`, `"line":3.0`, 1), 1},
		"line number beyond all bounds":    {strings.Replace(oneFinding, `"line":3`, `"line":1e30`, 1), 1},
		"braces and fences in the strings": {strings.Replace(oneFinding, "Off by one", "{`}```", 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, nil)
			got, err := r.parseFindings(test.content)
			if err != nil || len(got) != test.findings {
				t.Errorf("got %d findings, error %v", len(got), err)
			}
		})
	}
}

func TestParseRefusesWhatIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string { return strings.Replace(oneFinding, old, replacement, 1) }
	for name, content := range map[string]string{
		"nothing":                             "",
		"prose":                               "The change looks good.",
		"cut off":                             oneFinding[:len(oneFinding)/2],
		"cut off after a quoted clean answer": "The code says {\"findings\":[]} here.\n" + oneFinding[:40],
		"two answers":                         noFindings + "\n" + oneFinding,
		"clean answer quoted in prose":        "The code says " + noFindings + " but\n" + oneFinding,
		"thinking without an end":             "<think>" + canary + " {",
		"bare array":                          "[" + oneFinding[13:len(oneFinding)-2] + "]",
		"another object":                      `{"error":"` + canary + `"}`,
		"null list":                           `{"findings":null}`,
		"unknown field of ours":               `{"findings":[],"` + canary + `":1}`,
		"unknown severity":                    with(`"high"`, `"`+canary+`"`),
		"unknown category":                    with(`"correctness"`, `"`+canary+`"`),
		"confidence in percent":               with("0.9", "90"),
		"negative confidence":                 with("0.9", "-0.1"),
		"confidence as text":                  with("0.9", `"`+canary+`"`),
		"missing quote":                       with(`"quote"`, `"`+canary+`"`),
		"blank title":                         with("Off by one", "  "),
		"blank explanation":                   with("The loop reads behind the end.", "\\n"),
		"line as text":                        with(`"line":3`, `"line":"3"`),
		"invalid JSON":                        `{"findings":[` + canary + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newReviewer(t, nil)
			got, err := r.parseFindings(content)
			if err == nil {
				t.Fatalf("got %d findings", len(got))
			}
			mustNotShow(t, "error", err.Error(), "Off by one")
		})
	}
}
