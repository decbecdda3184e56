package llm

import (
	"bytes"
	"crypto/hmac"
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
	//go:embed prompts/message.tmpl
	messageTemplate string
	//go:embed prompts/answer.schema.json
	schemaTemplate string
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
	first  string // check code at the beginning of the instructions
	system string // instructions, without rules
	user   *template.Template
	schema string                        // of the answer
	items  map[string]*jsonschema.Schema // of the elements of its lists
}

func loadPrompts(cfg Config) (*prompts, error) {
	data := struct {
		Code, Schema, Language string
		Verify, Check          bool
	}{Language: cfg.Language, Verify: cfg.Verify != VerifyOff}
	p := &prompts{}
	var err error
	if p.schema, err = render("schema", schemaTemplate, data); err != nil {
		return nil, err
	}
	if p.user, err = template.New("message").Parse(messageTemplate); err != nil {
		return nil, fmt.Errorf("parse the prompt: %w", err)
	}
	p.first = firstCode(cfg, p.schema)
	data.Code, data.Schema = p.first, p.schema // an endpoint may ignore the schema of a request
	if p.system, err = render("system", systemTemplate, data); err != nil {
		return nil, err
	}
	p.items, err = compileItems(schemaTemplate)
	return p, err
}

// firstCode returns the check code of the instructions. It is the same in all calls
// of an installation with this version of the prompts, so that their beginning
// stays cacheable, and unknown outside of the installation.
func firstCode(cfg Config, schema string) string {
	mac := hmac.New(sha256.New, []byte(cfg.CodeKey.Reveal()))
	_, _ = fmt.Fprintf(mac, "%s\x00%s\x00%s", systemTemplate, messageTemplate, schema)
	return hex.EncodeToString(mac.Sum(nil)[:codeBytes])
}

func render(name, text string, data any) (string, error) {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse the %s of the prompt: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return "", fmt.Errorf("render the %s of the prompt: %w", name, err)
	}
	return out.String(), nil
}

// compileItems compiles the schemas of a finding and of a verdict. Elements are
// validated one by one, so that an invalid one does not void the others. Fields without
// which a finding is usable may be missing. The schema that the endpoint gets lacks the
// checks that not all endpoints support in constrained decoding.
func compileItems(schema string) (map[string]*jsonschema.Schema, error) {
	whole, err := render("schema", schema, struct{ Verify, Check bool }{true, true})
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(whole))
	if err != nil {
		return nil, fmt.Errorf("parse the schema of answers: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answer.schema.json", doc); err != nil {
		return nil, fmt.Errorf("read the schema of answers: %w", err)
	}
	items := map[string]*jsonschema.Schema{}
	for _, list := range []string{listFindings, listVerdicts} {
		if items[list], err = c.Compile("answer.schema.json#/properties/" + list + "/items"); err != nil {
			return nil, fmt.Errorf("compile the schema of %s: %w", list, err)
		}
	}
	return items, nil
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
	Note     string // why earlier answers were unusable, or empty
	Code     string // the last check code
}

func (p *prompts) message(m userMessage) (string, error) {
	var out bytes.Buffer
	if err := p.user.Execute(&out, m); err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "render the prompt: %w", err)
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
	system := strings.ReplaceAll(run.system, run.prompts.first, "")
	sum := sha256.Sum256([]byte(system + "\x00" + messageTemplate))
	return hex.EncodeToString(sum[:])
}
