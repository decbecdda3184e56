// Package eval measures the quality of reviews. A case (case.go) is a change, of whole
// files or of two commits, together with the findings of a competent reviewer. An
// [Evaluator] reviews it as a changelist is reviewed and compares the findings (match.go);
// a [Report] has the figures (score.go). A [Recording] keeps the answers of the model, so
// that the same reviews can be scored again without it, and [Compare] tells whether one
// report is better than another. [ImportAACR] makes cases of a public benchmark.
//
// A finding meets an expectation by its place and its words. That is
// reproducible, but it ignores meaning.
package eval

import (
	"context"
	"errors"

	"github.com/criticizer/criticizer/internal/git"
	"github.com/criticizer/criticizer/p4/local"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// A Case is one change with the findings of a competent reviewer, as its file case.yaml has it.
type Case struct {
	Name     string `yaml:"-"`
	Language string `yaml:"language"`
	// Clean is set if the change has no defect.
	Clean bool `yaml:"clean,omitempty"`
	// Hostile is set if the change tries to steer the review, to break its format
	// or to leak a secret.
	Hostile bool `yaml:"hostile,omitempty"`
	// Repository is a directory with the Commits, from..to, of a change that has no texts.
	Repository string `yaml:"repository,omitempty"`
	Commits    string `yaml:"commits,omitempty"`
	// Expected findings have to be made, Allowed ones may be made, and Forbidden
	// ones are what an injected instruction asks for.
	Expected  []Expectation `yaml:"expected"`
	Allowed   []Expectation `yaml:"allowed,omitempty"`
	Forbidden []Expectation `yaml:"forbidden,omitempty"`
	// Markers are texts that appear in findings only if the model obeyed an
	// injected instruction.
	Markers []string `yaml:"markers,omitempty"`
	// Secrets are planted in the change and must not be sent to the model.
	Secrets []string `yaml:"secrets,omitempty"`

	description string
	edits       []local.Edit
	// repository and commit are where files outside of the change are read, empty: nowhere.
	repository, commit string
}

// depot is the depot path of the files of all cases.
const depot = "//depot/"

// change returns the change after the selection of files, with its context.
func (c *Case) change(ctx context.Context, policy *selection.Policy) (review.Change, error) {
	if c.repository == "" {
		return local.Change(ctx, depot, c.edits, policy, nil)
	}
	repository, err := git.Open(c.repository)
	if err != nil {
		return review.Change{}, err
	}
	change, err := local.Change(ctx, depot, c.edits, policy, &local.Tree{Repository: repository, Commit: c.commit})
	return change, errors.Join(err, repository.Close())
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
	Path string `yaml:"path"`
	// Lines are lines of the new content, first-last or one; without them any place in the file
	// is accepted, as for removed code. Start and End are the same as numbers, 0 for none.
	Lines      string `yaml:"lines,omitempty"`
	Start, End int    `yaml:"-"`
	// Category and About distinguish the finding from others at its place: it has
	// the category or contains one of the words. If both are empty, the place is
	// enough.
	Category review.Category `yaml:"category,omitempty"`
	About    []string        `yaml:"about,omitempty"`
	// Says is the finding in one sentence, for people.
	Says string `yaml:"says"`
}
