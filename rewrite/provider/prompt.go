package provider

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"text/template"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
)

// Each directory is one version of the prompts. A released version never changes: a
// job's routing decision names its version.
//
//go:embed prompts
var promptFiles embed.FS

// NewestPrompts is the version of the prompts for jobs that name none.
const NewestPrompts = "v1"

// prompts is one version of the prompts.
type prompts struct {
	system  map[rewrite.Strength]*template.Template
	message *template.Template
	schema  json.RawMessage
}

func loadPrompts() (map[string]prompts, error) {
	versions, err := promptFiles.ReadDir("prompts")
	if err != nil {
		return nil, err
	}
	loaded := map[string]prompts{}
	for _, v := range versions {
		if loaded[v.Name()], err = loadVersion(path.Join("prompts", v.Name())); err != nil {
			return nil, fmt.Errorf("load the prompts of version %s: %w", v.Name(), err)
		}
	}
	return loaded, nil
}

func loadVersion(dir string) (p prompts, err error) {
	p.system = map[rewrite.Strength]*template.Template{}
	for _, s := range rewrite.Strengths() {
		name := string(s) + ".md"
		t, err := template.New(name).ParseFS(promptFiles, path.Join(dir, name))
		if err != nil {
			return p, err
		}
		rules, err := promptFiles.ReadFile(path.Join(dir, "rules.md"))
		if err != nil {
			return p, err
		}
		if _, err = t.New("rules").Parse(string(rules)); err != nil {
			return p, err
		}
		p.system[s] = t
	}
	if p.message, err = template.ParseFS(promptFiles, path.Join(dir, "message.md")); err != nil {
		return p, err
	}
	p.schema, err = promptFiles.ReadFile(path.Join(dir, "answer.schema.json"))
	return p, err
}

type prompt struct {
	model, system, user string
	schema              json.RawMessage
	maxAnswerTokens     int
}

// data is the input of the templates.
type data struct {
	From, To    string
	Translated  bool
	Nonce       string
	Preferences []string
	Text        redaction.Text
}

// render renders an item, the same in every call, so that a batch that is uploaded
// again is the same batch. The system message, which providers can cache, is the same
// for all items of one strength and language pair.
func (p prompts) render(item rewrite.Item) (prompt, error) {
	from, to := languageName(item.Languages.From), languageName(item.Languages.To)
	d := data{From: from, To: to, Translated: from != to, Nonce: nonce(item), Text: item.Text}
	for _, name := range slices.Sorted(maps.Keys(item.Preferences)) {
		d.Preferences = append(d.Preferences, fmt.Sprintf("%s: %s", name, item.Preferences[name]))
	}
	system := p.system[item.Strength]
	if system == nil {
		return prompt{}, failure.Errorf(failure.InputInvalid, "render prompt: unknown strength %q", item.Strength)
	}
	var instructions, message bytes.Buffer
	if err := cmp.Or(system.Execute(&instructions, d), p.message.Execute(&message, d)); err != nil {
		return prompt{}, failure.Errorf(failure.InvariantViolated, "render prompt: %w", err)
	}
	return prompt{model: item.Model, system: instructions.String(), user: message.String(), schema: p.schema}, nil
}

// nonce returns the delimiter of an item's texts in the prompt: a hash of the texts. A
// text cannot contain its own hash, so no text can close the delimiter. Unlike a random
// delimiter, it is the same in every attempt.
func nonce(item rewrite.Item) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", item.JobID, item.Text.String())
	for _, name := range slices.Sorted(maps.Keys(item.Preferences)) {
		fmt.Fprintf(h, " %q %q", name, item.Preferences[name].String())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// languageName returns the English name of a BCP-47 tag with the tag, such as
// "Brazilian Portuguese (pt-BR)".
func languageName(tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return tag
	}
	if name := display.English.Tags().Name(t); name != "" {
		return name + " (" + t.String() + ")"
	}
	return t.String()
}
