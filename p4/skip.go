package p4

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/review"
)

// SkipRules say which changes are not reviewed at all (docs/selection.md). A rule
// that lists nothing skips nothing.
type SkipRules struct {
	// Users and Clients are names, in which * stands for anything. Letters match
	// in either case.
	Users, Clients []string
	// Paths are trees and files, as in Config.Allowed: a change is skipped if all
	// its files are in them.
	Paths []string
	// Tags are words of a description, such as #noreview, in either case.
	Tags []string
}

// A skipper holds checked rules.
type skipper struct {
	SkipRules
	paths AllowList // empty if no paths are listed
}

func newSkipper(rules SkipRules) (s skipper, err error) {
	s.SkipRules = rules
	for _, pattern := range slices.Concat(rules.Users, rules.Clients) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return s, fmt.Errorf("skip rule %q is no pattern: write a name, with * for anything", pattern)
		}
	}
	for _, tag := range rules.Tags {
		if strings.TrimSpace(tag) == "" {
			return s, fmt.Errorf("skip rule %q is no tag: write one such as #noreview", tag)
		}
	}
	if len(rules.Paths) > 0 {
		if s.paths, err = NewAllowList(rules.Paths, nil); err != nil {
			return s, fmt.Errorf("skip rules: %w", err)
		}
	}
	return s, nil
}

// why returns the first rule that skips the change, empty if none does.
func (s skipper) why(d description, foldCase bool) review.SkipRule {
	switch {
	case matchesAny(s.Users, d.User):
		return review.SkipRuleUser
	case matchesAny(s.Clients, d.Client):
		return review.SkipRuleClient
	case slices.ContainsFunc(s.Tags, func(tag string) bool { return hasTag(d.Description, tag) }):
		return review.SkipRuleTag
	case s.coversAll(d.files, foldCase):
		return review.SkipRulePaths
	}
	return ""
}

func (s skipper) coversAll(files []*file, foldCase bool) bool {
	return len(s.Paths) > 0 && len(files) > 0 &&
		!slices.ContainsFunc(files, func(f *file) bool { return s.paths.Check(f.path, foldCase) != nil })
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
		return ok && err == nil
	})
}

// hasTag reports whether the tag stands in the text as a word of its own: of
// #noreviewer it is only a part.
func hasTag(text, tag string) bool {
	text, tag = strings.ToLower(text), strings.ToLower(tag)
	for {
		before, after, found := strings.Cut(text, tag)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !inWord(last) && !inWord(next) {
			return true
		}
		text = after
	}
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' || r == '#'
}
