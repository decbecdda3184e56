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

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction"
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
)

// maxAboutBytes is how much of a changelist's description and jobs the model
// is shown, in every call.
const maxAboutBytes = 2_000

// prompts holds what is the same in every call.
type prompts struct {
	system string // without the rules for a change
	change *template.Template
}

func loadPrompts(format AnswerFormat, language string) (*prompts, error) {
	system, err := template.New("system").Parse(systemTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the system prompt: %w", err)
	}
	change, err := template.New("change").Parse(changeTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the change prompt: %w", err)
	}
	data := struct{ Schema, Language string }{Language: language}
	if format != FormatSchema {
		data.Schema = findingsSchema
	}
	var text bytes.Buffer
	if err := system.Execute(&text, data); err != nil {
		return nil, fmt.Errorf("render the system prompt: %w", err)
	}
	return &prompts{system: text.String(), change: change}, nil
}

// with returns the instructions with the rules for a change behind them: what
// all reviews share comes first, then what all calls of one review do, so that
// providers can cache it.
func (p *prompts) with(g guide) string {
	if g.text == "" {
		return p.system
	}
	return p.system + rulesPrompt + g.text
}

// digest tells which instructions and schema a review was made with.
func (p *prompts) digest(system string) string {
	sum := sha256.Sum256([]byte(system + "\x00" + changeTemplate + "\x00" + findingsSchema))
	return hex.EncodeToString(sum[:])
}

// user renders the message that shows text, a rendered change, between two
// instructions. Its fence is drawn anew for every request, so nobody can write
// a text that closes it. What providers can cache, the system message, comes
// before it and is the same in all requests of a review.
func (p *prompts) user(text string) (string, error) {
	var out bytes.Buffer
	if err := p.change.Execute(&out, struct{ Nonce, Text string }{newNonce(), text}); err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "render the prompt of a change: %w", err)
	}
	return out.String(), nil
}

// newNonce draws what tells a fence from all others.
func newNonce() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}

// about renders what is known of the change as a whole.
func about(c redaction.Change) string {
	var text strings.Builder
	text.WriteString(c.Description.String())
	for _, job := range c.Jobs {
		text.WriteString("\n\njob: " + job.String())
	}
	var out strings.Builder
	out.WriteString("description")
	for s := range strings.Lines(strings.TrimSpace(text.String())) {
		out.WriteString("\n| " + visible(strings.TrimRight(s, "\r\n")))
	}
	clipped, _ := clip(out.String(), maxAboutBytes, "text")
	return clipped + "\n"
}

// render shows c. Every line of it that is not ours begins with "| ", a blank
// or a digit, so no content can pass for the head of a file or hunk:
//
//	file //depot/main/a.c (edit, text)
//	@@ int main(void)
//	    12   unchanged
//	    13 + added
//	       - removed
func (c chunk) render() string {
	var out strings.Builder
	for _, s := range c {
		out.WriteString(s.file.head())
		for _, h := range s.hunks {
			out.WriteString(h.head())
			for _, l := range h.lines {
				out.WriteString(l.render())
			}
		}
	}
	return out.String()
}

func (f *file) head() string { return "file " + f.shown + " (" + f.kind + ")\n" }

func (h hunk) head() string { return "@@ " + h.heading + "\n" }

func (l line) render() string {
	if l.mark == '-' {
		return "       - " + l.text + "\n"
	}
	return fmt.Sprintf("%6d %c %s\n", l.number, l.mark, l.text)
}
