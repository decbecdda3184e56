package review

import "slices"

// Progress says what became of the findings of an earlier version of a review
// (review-notification 10.4).
type Progress struct {
	Since     Version // the earlier version
	OnShelf   bool    // the earlier version is of the shelf that was submitted
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
	p := &Progress{Since: earlier.Version, OnShelf: earlier.Shelved && !now.Shelved, open: map[string]bool{}}
	for _, f := range earlier.Findings {
		for _, print := range f.fingerprints() {
			p.open[print] = true
		}
	}
	found := map[string]bool{}
	for _, f := range now.Findings {
		for _, print := range f.fingerprints() {
			found[print] = true
		}
		if p.IsNew(f) {
			p.New++
		} else {
			p.StillOpen++
		}
	}
	for _, f := range earlier.Findings {
		switch {
		case slices.ContainsFunc(f.fingerprints(), func(print string) bool { return found[print] }):
		case now.readAll(f):
			p.Resolved = append(p.Resolved, f)
		default:
			p.Unchecked = append(p.Unchecked, f)
		}
	}
	return p
}

// IsNew reports whether the earlier version did not have f, at any place.
func (p *Progress) IsNew(f Finding) bool {
	return !slices.ContainsFunc(f.fingerprints(), func(print string) bool { return p.open[print] })
}

// readAll reports whether all files of f are certain to have been reviewed.
func (r Report) readAll(f Finding) bool {
	return r.read(f.Path) && !slices.ContainsFunc(f.Places, func(p Place) bool { return !r.read(p.Path) })
}

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
