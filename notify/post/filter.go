package post

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/review"
)

// A Filter selects the reviews that a channel gets.
type Filter struct {
	// Only reviews with a file under one of these patterns, such as //depot/Tools/... or
	// *.sql; with a severity above low, only those with such a finding there. Empty: all.
	Paths []string `yaml:"paths"`
	// Only reviews of changes by these p4 users, in which * matches any text. Empty: all.
	Authors []string `yaml:"authors"`
}

// Clean stands below all severities: a channel with it gets clean reviews, too.
const Clean review.Severity = "clean"

// Check implements the checks of package config.
func (f Filter) Check(p *config.Problems) {
	_, err := f.patterns()
	p.Add(err != nil, "paths", fmt.Sprint(err), "write one such as //depot/Tools/... or *.sql")
	for _, author := range f.Authors {
		_, err := path.Match(author, "")
		p.Add(err != nil, "authors", fmt.Sprintf("%q is not a pattern", author), "write a user, with * for any text")
	}
}

// patterns parses the paths, in which a p4 user may write the last wildcard as in p4.
func (f Filter) patterns() (glob.List, error) {
	paths := slices.Clone(f.Paths)
	for i, p := range paths {
		if folder, ok := strings.CutSuffix(p, "/..."); ok {
			paths[i] = folder + "/**"
		}
	}
	return glob.ParseList(paths)
}

// Wants reports whether a channel gets the review. least is the least severity of the findings
// for which it does, or Clean.
func (f Filter) Wants(r review.Report, least review.Severity) bool {
	if r.Outcome == review.OutcomeClean && least != Clean {
		return false
	}
	patterns, err := f.patterns()
	if err != nil { // unreachable: it was checked
		return true
	}
	byOne := func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(r.Author))
		return ok && err == nil
	}
	if len(f.Authors) > 0 && !slices.ContainsFunc(f.Authors, byOne) {
		return false
	}
	under := func(file string) bool {
		_, ok := patterns.Match(file)
		return ok || len(f.Paths) == 0
	}
	if least != Clean && least != review.SeverityLow {
		return slices.ContainsFunc(r.Findings, func(found review.Finding) bool {
			return found.Severity.Rank() <= least.Rank() && under(found.Path)
		})
	}
	return len(f.Paths) == 0 || slices.ContainsFunc(r.Coverage, func(c review.FileCoverage) bool { return under(c.Path) }) ||
		slices.ContainsFunc(r.Findings, func(found review.Finding) bool { return under(found.Path) })
}
