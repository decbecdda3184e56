package review

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Fingerprint tells findings apart across versions of a review: by file,
// category and quoted code, blanks aside. What a model words anew each time
// (title, explanation, even the severity) is not part of it.
func (f Finding) Fingerprint() string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + string(f.Category) + "\x00" + strings.Join(strings.Fields(f.Quote), " ")))
	return hex.EncodeToString(sum[:16])
}

// Progress says what became of the findings of an earlier version of a review
// (review-notification 10.4).
type Progress struct {
	Since     Version // the earlier version
	New       int     // findings that it did not have
	StillOpen int     // findings that it had too
	// Resolved are its findings that are gone.
	Resolved []Finding
	// Unchecked are its findings in files that were not reviewed this time:
	// nobody knows about them.
	Unchecked []Finding

	open map[string]bool // fingerprints of its findings
}

// Compare says what became of the findings of earlier.
func Compare(earlier, now Report) *Progress {
	p := &Progress{Since: earlier.Version, open: map[string]bool{}}
	for _, f := range earlier.Findings {
		p.open[f.Fingerprint()] = true
	}
	found := map[string]bool{}
	for _, f := range now.Findings {
		found[f.Fingerprint()] = true
		if p.IsNew(f) {
			p.New++
		} else {
			p.StillOpen++
		}
	}
	for _, f := range earlier.Findings {
		switch {
		case found[f.Fingerprint()]:
		case now.read(f.Path):
			p.Resolved = append(p.Resolved, f)
		default:
			p.Unchecked = append(p.Unchecked, f)
		}
	}
	return p
}

// IsNew reports whether the earlier version did not have f.
func (p *Progress) IsNew(f Finding) bool { return !p.open[f.Fingerprint()] }

// read reports whether the file is certain to have been reviewed whole.
func (r Report) read(path string) bool {
	for _, o := range r.Omissions {
		if o.Path == path {
			return false
		}
	}
	unaccounted := r.FilesTotal - r.FilesRead - len(r.Omissions)
	return r.Outcome != OutcomeNotReviewed && unaccounted <= 0
}
