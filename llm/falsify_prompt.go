package llm

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/criticizer/criticizer/internal/failure"
)

var (
	//go:embed prompts/falsify_system.tmpl
	falsifySystemTemplate string
	//go:embed prompts/falsify.tmpl
	falsifyTemplate string
	//go:embed prompts/verdicts.schema.json
	verdictsSchema string
)

// falsifyPrompts holds what is the same in every second look.
type falsifyPrompts struct {
	system map[AnswerFormat]string
	look   *template.Template
}

func loadFalsify() (*falsifyPrompts, error) {
	system, err := template.New("falsify_system").Parse(falsifySystemTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the system prompt of the second look: %w", err)
	}
	look, err := template.New("falsify").Parse(falsifyTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the prompt of the second look: %w", err)
	}
	p := &falsifyPrompts{system: map[AnswerFormat]string{}, look: look}
	for format, schema := range map[AnswerFormat]string{FormatSchema: "", FormatObject: verdictsSchema, FormatText: verdictsSchema} {
		var text bytes.Buffer
		if err := system.Execute(&text, struct{ Schema string }{schema}); err != nil {
			return nil, fmt.Errorf("render the system prompt of the second look: %w", err)
		}
		p.system[format] = text.String()
	}
	return p, nil
}

// user renders the message that shows a part of a change and the findings in it,
// both in a fence that is drawn anew.
func (p *falsifyPrompts) user(text, findings string) (string, error) {
	var out bytes.Buffer
	err := p.look.Execute(&out, struct{ Nonce, Text, Findings string }{newNonce(), text, findings})
	if err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "render the prompt of the second look: %w", err)
	}
	return out.String(), nil
}
