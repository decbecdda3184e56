package review

import "slices"

// Progress compares the findings of a review with those of an earlier version.
type Progress struct {
	Since     Version // the earlier version
	OnShelf   bool    // the earlier version is the review of the shelf
	New       int     // findings that the earlier version did not have
	StillOpen int     // findings that it had
	// Resolved are its findings that this version does not have.
	Resolved []Finding
	// Unchecked are its findings in files that this version did not review.
	Unchecked []Finding

	open map[string]bool // fingerprints of its findings
}

// Compare compares the findings of now with those of earlier.
func Compare(earlier, now Report) *Progress {
	p := &Progress{Since: earlier.Version, OnShelf: earlier.Shelved && !now.Shelved, open: map[string]bool{}}
	for _, f := range earlier.Findings {
		for _, print := range f.Fingerprints() {
			p.open[print] = true
		}
	}
	found := map[string]bool{}
	for _, f := range now.Findings {
		for _, print := range f.Fingerprints() {
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
		case slices.ContainsFunc(f.Fingerprints(), func(print string) bool { return found[print] }):
		case now.readAll(f):
			p.Resolved = append(p.Resolved, f)
		default:
			p.Unchecked = append(p.Unchecked, f)
		}
	}
	return p
}

// IsNew reports whether the earlier version did not have f at any of its places.
func (p *Progress) IsNew(f Finding) bool {
	return !slices.ContainsFunc(f.Fingerprints(), func(print string) bool { return p.open[print] })
}

// readAll reports whether no file of f has hidden lines.
func (r Report) readAll(f Finding) bool {
	return r.read(f.Path) && !slices.ContainsFunc(f.Places, func(p Place) bool { return !r.read(p.Path) })
}

// read reports whether the file has no hidden lines.
func (r Report) read(path string) bool {
	return r.Outcome != OutcomeNotReviewed && !slices.ContainsFunc(r.Coverage, func(f FileCoverage) bool {
		state, _ := f.Worst()
		return f.Path == path && state == LinesHidden
	})
}
