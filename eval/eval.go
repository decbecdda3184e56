// Package eval measures the quality of reviews. A case is a change together with
// the findings of a competent reviewer. An [Evaluator] reviews the case with the
// product's selection, redaction and reviewer, and compares the findings. The
// cases in builtin are part of the project; others are directories of the same
// form, or are imported from public benchmarks.
//
// A finding meets an expectation by its place and its words. That is
// reproducible, but it ignores meaning.
package eval

import (
	"github.com/criticizer/criticizer/review"
)

// A Case is one change with the findings of a competent reviewer.
type Case struct {
	Name     string
	Language string
	// Clean is set if the change has no defect.
	Clean bool
	// Hostile is set if the change tries to steer the review, to break its format
	// or to leak a secret.
	Hostile     bool
	Description string
	// Expected findings have to be made, Allowed ones may be made, and Forbidden
	// ones are what an injected instruction asks for.
	Expected, Allowed, Forbidden []Expectation
	// Markers are texts that appear in findings only if the model obeyed an
	// injected instruction.
	Markers []string
	// Secrets are planted in the change and must not be sent to the model.
	Secrets []string

	files []file
}

// The classes of cases, as in the JSON report.
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

// An Expectation describes a finding.
type Expectation struct {
	Path string
	// Start and End are lines of the new content; 0 accepts any place in the file,
	// as for removed code.
	Start, End int
	// Category and About distinguish the finding from others at its place: it has
	// the category or contains one of the words. If both are empty, the place is
	// enough.
	Category review.Category
	About    []string
	// Says is the finding in one sentence, for people.
	Says string
}
