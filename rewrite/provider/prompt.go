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
	"slices"
	"text/template"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
)

//go:embed prompts
var promptFiles embed.FS

// NewestPrompts is the version of the prompts for jobs that name none.
const NewestPrompts = "v1"

// prompts are the templates by version. A released version never changes: a job's routing decision
// names its version.
var prompts = map[string]*template.Template{"v1": template.Must(template.ParseFS(promptFiles, "prompts/v1/*.md"))}

type prompt struct {
	model, system, user string
	schema              json.RawMessage
	maxAnswerTokens     int
}

// data is the input of the templates.
type data struct {
	From, To    string
	Nonce       string
	Preferences []string
	Text        redaction.Text
}

// render renders an item, the same in every call, so that a batch that is uploaded
// again is the same batch. The system message, which providers can cache, is the same
// for all items of one strength and language pair.
func render(version string, item rewrite.Item) (prompt, error) {
	texts, known := prompts[version]
	if !known {
		return prompt{}, failure.Errorf(failure.AdapterUnsupported, "unknown prompt version %q", version)
	}
	d := data{From: languageName(item.Languages.From), To: languageName(item.Languages.To), Nonce: nonce(item), Text: item.Text}
	for _, name := range slices.Sorted(maps.Keys(item.Preferences)) {
		d.Preferences = append(d.Preferences, fmt.Sprintf("%s: %s", name, item.Preferences[name]))
	}
	var instructions, message bytes.Buffer
	schema, err := promptFiles.ReadFile("prompts/" + version + "/answer.schema.json")
	if err := cmp.Or(err, texts.ExecuteTemplate(&instructions, string(item.Strength)+".md", d), texts.ExecuteTemplate(&message, "message.md", d)); err != nil {
		return prompt{}, failure.Errorf(failure.InvariantViolated, "render prompt: %w", err)
	}
	return prompt{system: instructions.String(), user: message.String(), schema: schema}, nil
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
