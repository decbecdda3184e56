package mail

import (
	"fmt"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// maxResolved bounds the resolved findings that are listed.
const maxResolved = 10

// A progressView describes what changed since an earlier version of the review.
type progressView struct {
	Since    string // "version 2", or the shelf
	Summary  string // "1 new, 2 still open"
	Resolved []string
	// ResolvedMore counts the resolved findings that are not listed.
	ResolvedMore string
}

// newProgressView returns nil if there is no earlier version.
func newProgressView(p *review.Progress) *progressView {
	if p == nil {
		return nil
	}
	v := &progressView{
		Since:        since(p),
		Summary:      fmt.Sprintf("%d new, %d still open, %d resolved", p.New, p.StillOpen, len(p.Resolved)),
		ResolvedMore: more(len(p.Resolved)-maxResolved, "finding"),
	}
	if n := len(p.Unchecked); n > 0 {
		v.Summary += fmt.Sprintf("; %d in files not reviewed this time", n)
	}
	for _, f := range p.Resolved[:min(len(p.Resolved), maxResolved)] {
		v.Resolved = append(v.Resolved, plain.Line(f.Path, maxPath)+": "+plain.Line(f.Title, maxTitle))
	}
	return v
}

// age returns whether the earlier version had f, empty without an earlier version.
func age(p *review.Progress, f review.Finding) string {
	switch {
	case p == nil:
		return ""
	case p.IsNew(f):
		return "new since " + since(p)
	}
	return "still open since " + since(p)
}

// since names the earlier version.
func since(p *review.Progress) string {
	if p.OnShelf {
		return "the review of the shelf"
	}
	return fmt.Sprintf("version %d", p.Since)
}
