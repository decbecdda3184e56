package llm

import (
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	//go:embed prompts/system.tmpl
	systemTemplate string
	//go:embed prompts/rules.txt
	rulesPrompt string
	//go:embed prompts/message.tmpl
	messageTemplate string
	//go:embed prompts/answer.schema.json
	schemaTemplate string

	messages = template.Must(template.New("message").Parse(messageTemplate))
)

// The lists of an answer, one for each task.
const (
	listFindings = "findings"
	listVerdicts = "verdicts"
)

// prompts are the parts of a prompt that all calls of an installation share:
// reviews and verifications have the same instructions, so that the call for one
// can use the provider's cache of the other.
type prompts struct {
	first  string                        // check code at the beginning of the instructions, the same for one version of them
	system string                        // instructions, without rules
	schema string                        // of the answer
	items  map[string]*jsonschema.Schema // of the elements of its lists
}

// loadPrompts renders the instructions and the schema of answers, and compiles the schemas of a
// finding and of a verdict. Elements are validated one by one, so that an invalid one does not
// void the others. Fields without which a finding is usable may be missing. The schema that the
// endpoint gets lacks the checks that not all endpoints support in constrained decoding.
func loadPrompts(cfg Config) (*prompts, error) {
	type settings struct {
		Code, Schema, Language string
		Verify, Check          bool
	}
	var failed error
	render := func(text string, data settings) string {
		var out strings.Builder
		t, err := template.New("prompt").Parse(text)
		if err == nil {
			err = t.Execute(&out, data)
		}
		if err != nil {
			failed = fmt.Errorf("render the prompt: %w", err)
		}
		return out.String()
	}
	data := settings{Language: cfg.Language, Verify: cfg.Verify != VerifyOff}
	p := &prompts{schema: render(schemaTemplate, data), items: map[string]*jsonschema.Schema{}}
	sum := sha256.Sum256([]byte(systemTemplate + messageTemplate + p.schema))
	p.first = hex.EncodeToString(sum[:codeBytes])
	data.Code, data.Schema = p.first, p.schema // an endpoint may ignore the schema of a request
	p.system = render(systemTemplate, data)

	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(render(schemaTemplate, settings{Verify: true, Check: true})))
	c := jsonschema.NewCompiler()
	if err == nil {
		err = c.AddResource("answer.schema.json", doc)
	}
	for _, list := range []string{listFindings, listVerdicts} {
		if err == nil {
			p.items[list], err = c.Compile("answer.schema.json#/properties/" + list + "/items")
		}
	}
	if failed == nil && err != nil {
		failed = fmt.Errorf("compile the schema of answers: %w", err)
	}
	return p, failed
}

// withRules returns the instructions followed by the rules for a change. The
// part that all reviews share comes first, so that providers can cache it.
func (p *prompts) withRules(g guide) string {
	if g.text == "" {
		return p.system
	}
	return p.system + rulesPrompt + g.text
}

// A userMessage is the data of the user message. What calls share comes first and
// the task last, so that the verification and the repair of an answer have the
// longest possible prefix in common with the first call.
type userMessage struct {
	Fence    string // hex digits of the review, so that no text can contain its closing fence
	Text     string // the description and a part of the change, with check codes
	Pack     string // code around the part for the verification, with check codes
	Findings string // to verify, or empty
	Note     string // why an earlier answer was unusable, or empty
	Code     string // the last check code
}

func newNonce() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never returns an error
	return hex.EncodeToString(nonce[:])
}

// promptDigest returns the digest of the instructions and schema of the review.
func (run *run) promptDigest() string {
	sum := sha256.Sum256([]byte(run.system + "\x00" + messageTemplate))
	return hex.EncodeToString(sum[:])
}
