package llm

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/review"
)

const (
	noFindings = `{"findings":[]}`
	oneFinding = `{"findings":[{"path":"//depot/a.go","severity":"high","category":"correctness","confidence":0.9,` +
		`"title":"Off by one","explanation":"The loop reads behind the end.","suggestion":"","quote":"for i := 0; i <= n; i++ {","line":3}]}`
)

// parsed returns the findings of an answer that ended by itself.
func parsed(t *testing.T, content string) ([]remark, error) {
	t.Helper()
	o, _, err := open(endpoint.Answer{Content: content, Finish: "stop"}, listFindings)
	if err != nil {
		return nil, err
	}
	found, _, err := decodeItems[remark](t.Context(), itemSchemas()[listFindings], o.items)
	return found, err
}

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
		"thinking of Mistral":              {"[THINK]so {\"findings\":[]}[/THINK]" + oneFinding, 1},
		"thinking of Seed":                 {"<seed:think>so {\"findings\":[]}</seed:think>" + oneFinding, 1},
		"thinking of Gemini":               {"<thought>so {\"findings\":[]}</thought>" + oneFinding, 1},
		"channels of gpt-oss":              {"<|channel|>analysis<|message|>{\"findings\":[]}<|end|><|start|>assistant<|channel|>final<|message|>" + oneFinding, 1},
		"channels with a constraint":       {"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>" + oneFinding, 1},
		"channels with a format":           {"<|channel|>analysis<|message|>{\"findings\":[]}<|end|><|start|>assistant<|channel|>final json<|message|>" + oneFinding + "<|return|>", 1},
		"channels without their marks":     {"analysisSo {\"findings\":[]}? No.assistantfinal" + oneFinding, 1},
		"thinking of Cohere":               {"<|START_THINKING|>so {\"findings\":[]}<|END_THINKING|><|START_TEXT|>" + oneFinding + "<|END_TEXT|>", 1},
		"thinking of Gemma 4":              {"<|channel>thought\nso {\"findings\":[]}<channel|>" + oneFinding, 1},
		"end of thinking in a quote":       {strings.Replace(oneFinding, "Off by one", "Off </think> by one", 1), 1},
		"the same, in a code fence":        {"```\n" + strings.Replace(oneFinding, "Off by one", "</think>", 1) + "```", 1},
		"line number as a decimal":         {strings.Replace(oneFinding, `"line":3`, `"line":3.0`, 1), 1},
		"line number beyond all bounds":    {strings.Replace(oneFinding, `"line":3`, `"line":99999999999999999999`, 1), 1},
		"braces and fences in the strings": {strings.Replace(oneFinding, "Off by one", "{`}```", 1), 1},
		"commas before the ends":           {oneFinding[:len(oneFinding)-3] + ",\n}, ],}", 1},
		"such commas, in a string":         {strings.Replace(oneFinding, "Off by one", "{1,}", 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parsed(t, test.content)
			if err != nil || len(got) != test.findings {
				t.Errorf("got %d findings, error %v", len(got), err)
			}
		})
	}
}

// Models that are not held to a schema copy code into strings as it is. A second request has the
// same result.
func TestParseReadsCodeThatIsNotEscaped(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"\tfor i := 0; i <= n; i++ {\n\t\tf(i)": "\tfor i := 0; i <= n; i++ {\n\t\tf(i)",
		`re.match('\d+\.\w', s)`:                `re.match('\d+\.\w', s)`,
		`open('C:\users\me')`:                   `open('C:\users\me')`,
		`x = d[\'HTML\']`:                       `x = d['HTML']`,
		`printf(\"%d\\n\", \u0041)`:             `printf("%d\n", A)`,
		`a \\d b \\\\ c \/ d`:                   `a \d b \\ c / d`,
	} {
		got, err := parsed(t, strings.Replace(oneFinding, "for i := 0; i <= n; i++ {", written, 1))
		if err != nil || len(got) != 1 || got[0].Quote != want {
			t.Errorf("%s: got %+v, error %v", written, got, err)
		}
	}
}

func TestParseRefusesWhatIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string { return strings.Replace(oneFinding, old, replacement, 1) }
	for name, content := range map[string]string{
		"nothing":                             "",
		"prose":                               "The change looks good.",
		"cut off after a quoted clean answer": "The code says {\"findings\":[]} here.\n" + oneFinding[:40],
		"clean answer quoted in prose":        "The code says " + noFindings + " but\n" + oneFinding,
		"clean answer after an odd quote":     oneFinding + " or 5\" {\n" + noFindings[1:],
		"thinking without an end":             "<think>" + canary + " {",
		"bare array":                          "[" + oneFinding[13:len(oneFinding)-2] + "]",
		"another object":                      `{"error":"` + canary + `"}`,
		"a list twice":                        strings.Replace(oneFinding, "{", `{"findings":[],`, 1),
		"codes that are not texts":            `{"codes":[1],"findings":[]}`,
		"only codes":                          `{"codes":[]}`,
		"null list":                           `{"findings":null}`,
		"unknown field of ours":               `{"findings":[],"` + canary + `":1}`,
		"unknown severity":                    with(`"high"`, `"`+canary+`"`),
		"confidence in percent":               with("0.9", "90"),
		"confidence as text":                  with("0.9", `"`+canary+`"`),
		"blank title":                         with("Off by one", "  "),
		"blank explanation":                   with("The loop reads behind the end.", "\\n"),
		"line with an exponent":               with(`"line":3`, `"line":1e-999999`),
		"line of 21 digits":                   with(`"line":3`, `"line":`+strings.Repeat("9", 21)),
		"invalid JSON":                        `{"findings":[` + canary + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parsed(t, content)
			if err == nil {
				t.Fatalf("got %d findings", len(got))
			}
			mustNotShow(t, "error", err.Error(), "Off by one")
		})
	}
}

// The content of an answer decides on its use, not its finish reason.
func TestEndOfAnswer(t *testing.T) {
	t.Parallel()
	cut := oneFinding[:len(oneFinding)-2] + `,{"path":"//dep`
	for name, test := range map[string]struct {
		answer   endpoint.Answer
		findings int
		cut      bool
		class    failure.Class
	}{
		"by itself":                            {endpoint.Answer{Content: oneFinding, Finish: "stop"}, 1, false, ""},
		"for no reason, whole":                 {endpoint.Answer{Content: oneFinding}, 1, false, ""},
		"for no reason, cut":                   {endpoint.Answer{Content: cut}, 0, false, failure.SchemaInvalid},
		"for no reason, empty":                 {endpoint.Answer{}, 0, false, failure.SchemaInvalid},
		"at the limit, yet whole":              {endpoint.Answer{Content: oneFinding, Finish: "length"}, 1, false, ""},
		"at the limit, after a finding":        {endpoint.Answer{Content: cut, Finish: "length"}, 1, true, ""},
		"at the limit of Anthropic":            {endpoint.Answer{Content: cut, Finish: "max_tokens"}, 1, true, ""},
		"at the limit, in the first finding":   {endpoint.Answer{Content: cut[:60], Finish: "length"}, 0, true, failure.TooLarge},
		"at the limit, empty":                  {endpoint.Answer{Finish: "length", Usage: review.Usage{CompletionTokens: 900}}, 0, true, failure.TooLarge},
		"by a filter":                          {endpoint.Answer{Content: cut, Finish: "content_filter"}, 0, false, failure.ContentPolicy},
		"by a filter of Google":                {endpoint.Answer{Content: cut, Finish: "SAFETY"}, 0, false, failure.ContentPolicy},
		"with a refusal":                       {endpoint.Answer{Refusal: "no", Finish: "stop"}, 0, false, failure.ContentPolicy},
		"with the call of a tool":              {endpoint.Answer{Tools: true, Finish: "tool_calls"}, 0, false, failure.SchemaInvalid},
		"by itself, cut":                       {endpoint.Answer{Content: cut, Finish: "stop"}, 0, false, failure.SchemaInvalid},
		"by itself, empty":                     {endpoint.Answer{Finish: "stop"}, 0, false, failure.SchemaInvalid},
		"for a reason that is not in the list": {endpoint.Answer{Content: oneFinding, Finish: "satisfied"}, 1, false, ""},
		"by a failure of the endpoint":         {endpoint.Answer{Content: oneFinding, Finish: "insufficient_system_resource"}, 0, false, failure.UpstreamUnavailable},
		"by a failure of the network":          {endpoint.Answer{Finish: "network_error"}, 0, false, failure.UpstreamUnavailable},
		"early":                                {endpoint.Answer{Content: cut, Early: true}, 0, false, failure.NetworkUnreachable},
		"early, yet whole":                     {endpoint.Answer{Content: oneFinding, Early: true}, 1, false, ""},
		"in the field of the thinking":         {endpoint.Answer{Thinking: "So:\n" + oneFinding, Finish: "stop"}, 1, false, ""},
		"early, drafted in the thinking":       {endpoint.Answer{Thinking: "So:\n" + noFindings, Early: true}, 0, false, failure.NetworkUnreachable},
		"early, drafted in a thought":          {endpoint.Answer{Content: "<think>So " + noFindings, Early: true}, 0, false, failure.NetworkUnreachable},
		"at the limit, drafted in a thought":   {endpoint.Answer{Content: "<think>So " + noFindings + "? But", Finish: "length"}, 0, true, failure.TooLarge},
		"at the limit, in Cohere's thinking":   {endpoint.Answer{Content: "<|START_THINKING|>so " + noFindings, Finish: "length"}, 0, true, failure.TooLarge},
		"at the limit, in Gemma's thinking":    {endpoint.Answer{Content: "<|channel>thought\nso " + noFindings, Finish: "length"}, 0, true, failure.TooLarge},
		"by a filter, with its name":           {endpoint.Answer{Finish: "content_filter: RECITATION"}, 0, false, failure.ContentPolicy},
		"with thinking only":                   {endpoint.Answer{Thinking: "hm", Finish: "stop"}, 0, false, failure.SchemaInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, cut, err := open(test.answer, listFindings)
			if (err != nil) != (test.class != "") || err != nil && failure.ClassOf(err) != test.class {
				t.Fatalf("error %v, want class %q", err, test.class)
			}
			if err == nil && (len(o.items) != test.findings || cut != test.cut) {
				t.Errorf("%d findings, cut %t", len(o.items), cut)
			}
		})
	}
}

// One bad finding does not void the others; if all are bad, the answer is unusable.
func TestInvalidFindingIsDropped(t *testing.T) {
	t.Parallel()
	d, _, err := scripted(t, []review.File{edited}, nil, answerWith(fields{"severity": "awful"}, fields{}))
	if err != nil || len(d.Findings) != 1 || d.Dropped[review.DropInvalid] != 1 {
		t.Errorf("draft %+v, error %v", d, err)
	}
	_, r, err := scripted(t, []review.File{edited}, nil, answerWith(fields{"severity": "awful"}), answerWith(fields{"severity": "awful"}))
	if failure.ClassOf(err) != failure.SchemaInvalid || r.calls() != 2 {
		t.Errorf("error %v after %d calls", err, r.calls())
	}
}
