package redaction

import "strings"

// A Mark is a range that was masked and the rule that asked for it. It holds
// nothing of what it masks.
type Mark struct {
	Start, End int // bytes of the text, in which U+FFFD stands for what is not UTF-8
	Line       int // from 1
	Class      string
	Rule       string
}

// Explain redacts a text as [Pipeline.String] does and says what was masked by
// which rule. diff forces the text to be read as a diff; otherwise it is if it
// looks like one.
func (p *Pipeline) Explain(s string, diff bool) (Text, []Mark, error) {
	var out Text
	pl := newPayload("text")
	f := formText
	if diff {
		f = formDiff
	}
	pl.add(f, s, &out)
	if err := p.redact(pl); err != nil {
		return Text{}, nil, err
	}
	var marks []Mark
	line, at := 1, 0
	for _, sp := range pl.parts[0].spans {
		line += strings.Count(pl.parts[0].raw[at:sp.start], "\n")
		at = sp.start
		marks = append(marks, Mark{sp.start, sp.end, line, sp.class, sp.rule})
	}
	return out, marks, nil
}
