package llm

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/criticizer/criticizer/internal/failure"
)

var (
	//go:embed prompts/system.tmpl
	systemTemplate string
	//go:embed prompts/rules.txt
	rulesPrompt string
	//go:embed prompts/change.tmpl
	changeTemplate string
	//go:embed prompts/findings.schema.json
	findingsSchema string
	//go:embed prompts/verify_system.tmpl
	verifySystemTemplate string
	//go:embed prompts/verify.tmpl
	verifyTemplate string
	//go:embed prompts/verdicts.schema.json
	verdictsSchema string
)

// prompts are the parts of a prompt that all questions of a kind share.
type prompts struct {
	list      string                  // name of the answer's list
	system    map[AnswerFormat]string // instructions, without rules
	user      *template.Template
	schema    string // of the answer
	validator *jsonschema.Schema
}

func loadPrompts(list, system, user, schema, language string) (*prompts, error) {
	p := &prompts{list: list, system: map[AnswerFormat]string{}, schema: schema}
	instructions, err := template.New("system").Parse(system)
	if err != nil {
		return nil, fmt.Errorf("parse the instructions for %s: %w", list, err)
	}
	if p.user, err = template.New("user").Parse(user); err != nil {
		return nil, fmt.Errorf("parse the prompt for %s: %w", list, err)
	}
	for _, format := range answerFormats {
		data := struct{ Schema, Language string }{schema, language}
		if format == FormatSchema {
			data.Schema = "" // the request has it
		}
		var text bytes.Buffer
		if err := instructions.Execute(&text, data); err != nil {
			return nil, fmt.Errorf("render the instructions for %s: %w", list, err)
		}
		p.system[format] = text.String()
	}
	if p.validator, err = compileSchema(schema); err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", list, err)
	}
	return p, nil
}

func compileSchema(schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answer.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("answer.schema.json")
}

// withRules returns the instructions followed by the rules for a change. The
// part that all reviews share comes first, so that providers can cache it.
func (p *prompts) withRules(g guide) map[AnswerFormat]string {
	if g.text == "" {
		return p.system
	}
	system := map[AnswerFormat]string{}
	for format, text := range p.system {
		system[format] = text + rulesPrompt + g.text
	}
	return system
}

// message renders the user message that shows a part of a change, and findings
// in it, between fences. The fences hold a nonce that is new in every request,
// so that no text can contain its closing fence. The system message has no nonce
// and stays cacheable.
func (p *prompts) message(text, findings string) (string, error) {
	var out bytes.Buffer
	if err := p.user.Execute(&out, struct{ Nonce, Text, Findings string }{newNonce(), text, findings}); err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "render the prompt for %s: %w", p.list, err)
	}
	return out.String(), nil
}

func newNonce() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never returns an error
	return hex.EncodeToString(nonce[:])
}

// promptDigest returns the digest of the instructions and schema of the review.
func (run *run) promptDigest() string {
	system := run.system[run.cfg.AnswerFormat]
	if run.cfg.Verify != VerifyOff {
		system += run.verdicts.system[run.cfg.AnswerFormat]
	}
	sum := sha256.Sum256([]byte(system + "\x00" + changeTemplate + "\x00" + findingsSchema))
	return hex.EncodeToString(sum[:])
}
