package p4

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// SkipRules list the changes that are not reviewed (docs/paths.md). An empty
// rule skips nothing.
type SkipRules struct {
	// p4 users whose changes are skipped; * matches any text, as in build-*.
	Users []string `yaml:"users"`
	// Depot paths, such as //depot/generated/...; a change is skipped if they
	// contain all its files.
	Paths []string `yaml:"paths"`
	// Words in a description that skip the change, such as #noreview. Every author
	// can write them.
	Tags []string `yaml:"description_tags"`
}

// A skipper applies valid rules.
type skipper struct {
	SkipRules
	paths AllowList // empty if no paths are listed
	tags  []*regexp.Regexp
}

func newSkipper(rules SkipRules) (s skipper, err error) {
	s.SkipRules = rules
	for _, pattern := range rules.Users {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return s, fmt.Errorf("skip rule %q is not a pattern: write a name, in which * matches any text", pattern)
		}
	}
	for _, tag := range rules.Tags {
		if strings.TrimSpace(tag) == "" {
			return s, fmt.Errorf("skip rule %q is not a tag: write one such as #noreview", tag)
		}
		// A word: #noreviewer does not have #noreview.
		s.tags = append(s.tags, regexp.MustCompile(`(?i)(^|[^\pL\p{Nd}_#-])`+regexp.QuoteMeta(tag)+`($|[^\pL\p{Nd}_#-])`))
	}
	if len(rules.Paths) > 0 {
		if s.paths, err = NewAllowList(rules.Paths, nil); err != nil {
			return s, fmt.Errorf("skip rules: %w", err)
		}
	}
	return s, nil
}

// match returns the first rule that skips the change, empty for none.
func (s skipper) match(d description, caseHandling string) review.SkipRule {
	switch {
	case matchesAny(s.Users, d.User):
		return review.SkipRuleUser
	case slices.ContainsFunc(s.tags, func(tag *regexp.Regexp) bool { return tag.MatchString(d.Description) }):
		return review.SkipRuleTag
	case len(s.Paths) > 0 && s.skipsAll(d, caseHandling):
		return review.SkipRulePaths
	}
	return ""
}

// skipsAll reports whether the paths contain all files of a change, or the common path of
// files that are too many to be described. A path counts as the server spells it, and as
// people write it.
func (s skipper) skipsAll(d description, caseHandling string) bool {
	contains := func(path string) bool {
		return s.paths.Check(withoutControls(path), caseHandling) == nil || s.paths.Check(encodePath(d.path(path)), caseHandling) == nil
	}
	if d.Empty == review.EmptyTooLarge {
		return contains(parent(d.root) + "_")
	}
	return len(d.files) > 0 && !slices.ContainsFunc(d.files, func(f *file) bool { return !contains(f.path) })
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
		return ok && err == nil
	})
}
