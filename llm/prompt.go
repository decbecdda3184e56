package llm

import (
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strings"
	"sync"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	//go:embed prompts/system.tmpl
	systemTemplate string
	//go:embed prompts/packs.tmpl
	rulesPrompt string
	//go:embed prompts/message.tmpl
	messageTemplate string
	//go:embed prompts/answer.schema.json
	schemaTemplate string

	systems  = template.Must(template.New("system").Parse(systemTemplate))
	messages = template.Must(template.New("message").Parse(messageTemplate))
	schemas  = template.Must(template.New("schema").Parse(schemaTemplate))
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
	first  string // check code at the beginning of the instructions, the same for one version of them
	system string // instructions, without rules
	schema string // of the answer
}

// settings are the data of the instructions and of the schema.
type settings struct {
	Code, Schema, Language string
	Verify, Check          bool
}

// loadPrompts renders the instructions and the schema of answers. The schema that the endpoint
// gets lacks the checks that not all endpoints support in constrained decoding.
func loadPrompts(cfg Config) *prompts {
	data := settings{Language: cfg.Language, Verify: cfg.Verify != VerifyOff}
	p := &prompts{schema: render(schemas, data)}
	sum := sha256.Sum256([]byte(systemTemplate + messageTemplate + p.schema))
	p.first = hex.EncodeToString(sum[:codeBytes])
	data.Code, data.Schema = p.first, p.schema // an endpoint may ignore the schema of a request
	p.system = render(systems, data)
	return p
}

// render renders a template of ours. It panics if the data lacks what the template names.
func render(t *template.Template, data any) string {
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		panic(err)
	}
	return out.String()
}

// itemSchemas returns the schemas of a finding and of a verdict. Elements are validated one by
// one, so that an invalid one does not void the others. Fields without which a finding is usable
// may be missing.
var itemSchemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	const name = "answer.schema.json"
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(render(schemas, settings{Verify: true, Check: true})))
	if err == nil {
		err = c.AddResource(name, doc)
	}
	if err != nil {
		panic(err)
	}
	items := map[string]*jsonschema.Schema{}
	for _, list := range []string{listFindings, listVerdicts} {
		items[list] = c.MustCompile(name + "#/properties/" + list + "/items")
	}
	return items
})

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
