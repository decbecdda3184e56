package redaction

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// sealMagic begins a sealed change; the format version is its last part.
const sealMagic = "criticizer-redacted/1"

type sealedChange struct {
	Number      review.Changelist  `json:"number"`
	User        string             `json:"user"`
	Description string             `json:"description"`
	Jobs        []string           `json:"jobs,omitempty"`
	SubmittedAt time.Time          `json:"submitted_at"`
	Files       []sealedFile       `json:"files"`
	Redactions  []review.Redaction `json:"redactions,omitempty"`
}

type sealedFile struct {
	Path     string            `json:"path"`
	Action   review.Action     `json:"action"`
	Type     string            `json:"type"`
	FromPath string            `json:"from_path,omitempty"`
	Diff     string            `json:"diff,omitempty"`
	Skipped  review.SkipReason `json:"skipped,omitempty"`
}

// Seal encodes a change for the way from the redact stage to the model stage.
// The first line names the pipeline's version and authenticates it and the rest.
func (p *Pipeline) Seal(c Change) ([]byte, error) {
	body, err := json.Marshal(toSealed(c))
	if err != nil {
		return nil, failure.Errorf(failure.RedactionBlocked, "seal changelist %d: %w", c.Number, err)
	}
	head := sealMagic + " " + p.version + " " + p.seal(body) + "\n"
	return append([]byte(head), body...), nil
}

// Unseal decodes what Seal of a pipeline with the same key and version made.
// Anything else is refused: another version has to be redacted again.
func (p *Pipeline) Unseal(data []byte) (Change, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	fields := bytes.Split(head, []byte(" "))
	if len(fields) != 3 || string(fields[0]) != sealMagic {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: this was not sealed by a redaction pipeline")
	}
	if string(fields[1]) != p.version {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: sealed by another redaction version than %s: redact it again", p.version)
	}
	if !hmac.Equal(fields[2], []byte(p.seal(body))) {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: the seal is broken or of another key")
	}
	var s sealedChange
	if err := json.Unmarshal(body, &s); err != nil {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: decode: stored form is not ours")
	}
	return p.fromSealed(s), nil
}

func (p *Pipeline) seal(body []byte) string {
	mac := hmac.New(sha256.New, p.sealKey)
	mac.Write([]byte(p.version))
	mac.Write([]byte{0})
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func toSealed(c Change) sealedChange {
	s := sealedChange{
		Number:      c.Number,
		User:        c.User.s,
		Description: c.Description.s,
		SubmittedAt: c.SubmittedAt,
		Redactions:  c.Redactions,
	}
	for _, job := range c.Jobs {
		s.Jobs = append(s.Jobs, job.s)
	}
	for _, f := range c.Files {
		s.Files = append(s.Files, sealedFile{f.Path.s, f.Action, f.Type.s, f.FromPath.s, f.Diff.s, f.Skipped})
	}
	return s
}

func (p *Pipeline) fromSealed(s sealedChange) Change {
	text := p.text
	c := Change{
		Number:      s.Number,
		User:        text(s.User),
		Description: text(s.Description),
		SubmittedAt: s.SubmittedAt,
		Redactions:  s.Redactions,
	}
	for _, job := range s.Jobs {
		c.Jobs = append(c.Jobs, text(job))
	}
	for _, f := range s.Files {
		c.Files = append(c.Files, File{text(f.Path), f.Action, text(f.Type), text(f.FromPath), text(f.Diff), f.Skipped})
	}
	return c
}
