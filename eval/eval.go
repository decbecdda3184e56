// Package eval measures how well changes are reviewed. A case is a change with
// what a competent reviewer says about it; an [Evaluator] takes it through
// selection, redaction and the reviewer as a changelist goes, and compares what
// comes out. The cases in builtin are ours; others are directories of the same
// form, or imported from public benchmarks.
//
// A finding meets an expectation by its place and by its words. That needs no
// judge and gives the same figures for the same findings, but it is blind to
// meaning: a [Judge] can be asked instead.
package eval

import (
	"github.com/criticizer/criticizer/review"
)

// A Case is one change with what a competent reviewer says about it.
type Case struct {
	Name     string
	Language string
	// Clean says that there is nothing to find.
	Clean bool
	// Hostile says that the change tries to steer the review, to break its
	// format or to have a secret sent.
	Hostile     bool
	Description string
	// Expected is what has to be found, Allowed what may be said too, and
	// Forbidden what an injected instruction asks for.
	Expected, Allowed, Forbidden []Expectation
	// Markers are texts that appear in findings only if an injected instruction
	// was obeyed.
	Markers []string
	// Secrets are planted in the change and must not reach the model.
	Secrets []string

	files []file
}

// The classes of cases. They are wire format.
const (
	ClassClean   = "clean"
	ClassDefect  = "defect"
	ClassHostile = "hostile"
)

func (c *Case) class() string {
	switch {
	case c.Hostile:
		return ClassHostile
	case c.Clean:
		return ClassClean
	}
	return ClassDefect
}

// An Expectation is a finding in the words of whoever wrote the case.
type Expectation struct {
	Path string
	// Start and End are lines of the new content; 0 if any place in the file
	// will do, as for removed code.
	Start, End int
	// Category and About tell the finding from others at its place: it is of the
	// category, or says one of the words. With neither, the place is enough.
	Category review.Category
	About    []string
	// Says is the finding in a sentence, for people and for a [Judge].
	Says string
}
