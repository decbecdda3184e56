package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// An Anchor states how the place of a finding was determined. It is wire format.
type Anchor string

// The anchors, most certain first. Only the first two have lines.
const (
	AnchorAdded   Anchor = "added"   // the quoted code is there, and the change wrote part of it
	AnchorContext Anchor = "context" // it is there, but the change did not touch it
	AnchorRemoved Anchor = "removed" // the change removed it
	AnchorFile    Anchor = "file"    // it was not found: the finding applies to the file
)

// A Place is a place of a finding.
type Place struct {
	Path string `json:"path"`
	// StartLine and EndLine are as in a [Finding].
	StartLine int `json:"start_line"`
	EndLine   int `json:"end_line"`
	// Fingerprint is the fingerprint of the finding at this place.
	Fingerprint string `json:"fingerprint"`
}

// Place returns the first place of f.
func (f Finding) Place() Place {
	return Place{Path: f.Path, StartLine: f.StartLine, EndLine: f.EndLine, Fingerprint: f.Fingerprint()}
}

// Fingerprint identifies a finding across versions of a review: by file, category and
// quoted code without white space. A model words the title and the explanation
// differently each time, so the title counts only for a finding without a quote.
func (f Finding) Fingerprint() string {
	about := f.Quote
	switch {
	case about == "" && f.Origin != nil:
		about = "\x00" + f.Origin.Fingerprint
	case about == "":
		about = "\x00" + strings.ToLower(f.Title)
	}
	sum := sha256.Sum256([]byte(f.Path + "\x00" + string(f.Category) + "\x00" + strings.Join(strings.Fields(about), " ")))
	return fingerprintText(sum)
}

func fingerprintText(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:16]) }

// Fingerprints returns the fingerprints of all places of f.
func (f Finding) Fingerprints() []string {
	all := []string{f.Fingerprint()}
	for _, p := range f.Places {
		all = append(all, p.Fingerprint)
	}
	return all
}

// MarshalJSON implements [json.Marshaler]. It adds the fingerprint, which is computed
// from the other fields.
func (f Finding) MarshalJSON() ([]byte, error) {
	type fields Finding
	return json.Marshal(struct {
		fields
		Fingerprint string `json:"fingerprint"`
	}{fields(f), f.Fingerprint()})
}
