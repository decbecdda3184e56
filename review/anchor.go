package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// An Anchor says how the place of a finding was found. It is wire format.
type Anchor string

// The anchors, surest first. Only the first two come with lines.
const (
	AnchorAdded   Anchor = "added"   // the quoted code stands there, and the change wrote some of it
	AnchorContext Anchor = "context" // it stands there, but the change did not touch it
	AnchorRemoved Anchor = "removed" // the change removed it
	AnchorFile    Anchor = "file"    // it was not found: the finding is about the file
)

// A Place is where a remark applies besides the place of its finding.
type Place struct {
	Path string `json:"path"`
	// StartLine and EndLine are as those of a [Finding].
	StartLine int `json:"start_line"`
	EndLine   int `json:"end_line"`
	// Fingerprint is that of the finding that was made here.
	Fingerprint string `json:"fingerprint"`
}

// Place is where f applies first.
func (f Finding) Place() Place {
	return Place{Path: f.Path, StartLine: f.StartLine, EndLine: f.EndLine, Fingerprint: f.Fingerprint()}
}

// Fingerprint tells findings apart across versions of a review: by file,
// category and quoted code, blanks aside. What a model words anew each time
// (title, explanation, even the severity) is not part of it, but the title has
// to do where no code was found.
func (f Finding) Fingerprint() string {
	about := f.Quote
	if about == "" {
		about = "\x00" + strings.ToLower(f.Title)
	}
	sum := sha256.Sum256([]byte(f.Path + "\x00" + string(f.Category) + "\x00" + strings.Join(strings.Fields(about), " ")))
	return hex.EncodeToString(sum[:16])
}

// fingerprints are those of all places of f.
func (f Finding) fingerprints() []string {
	all := []string{f.Fingerprint()}
	for _, p := range f.Places {
		all = append(all, p.Fingerprint)
	}
	return all
}

// MarshalJSON implements [json.Marshaler]: it adds the fingerprint, which is
// reckoned anew each time, so that it always fits the rest.
func (f Finding) MarshalJSON() ([]byte, error) {
	type fields Finding
	return json.Marshal(struct {
		fields
		Fingerprint string `json:"fingerprint"`
	}{fields(f), f.Fingerprint()})
}
