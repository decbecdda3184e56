package p4

import (
	"testing"

	"github.com/criticizer/criticizer/review"
)

func TestSkipRules(t *testing.T) {
	t.Parallel()
	files := []rev{{path: "//depot/gen/a.c", rev: 1, action: "add", data: "a\n"}, {path: "//depot/gen/b.c", rev: 1, action: "add", data: "b\n"}}
	mixed := []rev{files[0], {path: "//depot/src/c.c", rev: 1, action: "add", data: "c\n"}}
	cases := []struct {
		name  string
		rules SkipRules
		desc  string
		files []rev
		want  review.SkipRule
	}{
		{"no rules", SkipRules{}, "Mend. #noreview", files, ""},
		{"the user", SkipRules{Users: []string{"Ann"}}, "Mend.", files, review.SkipRuleUser},
		{"users of a pattern", SkipRules{Users: []string{"build-*", "a*"}}, "Mend.", files, review.SkipRuleUser},
		{"another user", SkipRules{Users: []string{"an"}}, "Mend.", files, ""},
		{"all files in a tree", SkipRules{Paths: []string{"//depot/gen/..."}}, "Mend.", files, review.SkipRulePaths},
		{"all files, named", SkipRules{Paths: []string{"//depot/gen/a.c", "//depot/gen/b.c"}}, "Mend.", files, review.SkipRulePaths},
		{"one file elsewhere", SkipRules{Paths: []string{"//depot/gen/..."}}, "Mend.", mixed, ""},
		{"no files", SkipRules{Paths: []string{"//depot/gen/..."}}, "Mend.", nil, ""},
		{"a tag", SkipRules{Tags: []string{"#noreview"}}, "Mend. #NoReview\n", files, review.SkipRuleTag},
		{"a tag before a full stop", SkipRules{Tags: []string{"#noreview"}}, "Mend (#noreview).", files, review.SkipRuleTag},
		{"a tag after a part of a word", SkipRules{Tags: []string{"#noreview"}}, "#noreviewer #noreview", files, review.SkipRuleTag},
		{"a tag of several words", SkipRules{Tags: []string{"[no review]"}}, "Mend [no review]", files, review.SkipRuleTag},
		{"a part of a word", SkipRules{Tags: []string{"#noreview"}}, "#noreviewer #noreview-ever x#noreview ##noreview", files, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, tc.files...)
			f.describes(12, []string{"desc", tc.desc}, tc.files...)
			change, err := f.fetch(12, func(c *Config) { c.Skip = tc.rules })
			if err != nil || change.SkippedBy != tc.want {
				t.Fatalf("skipped by %q, %v; want %q", change.SkippedBy, err, tc.want)
			}
			if tc.want == "" {
				return
			}
			if change.Description != "" || change.Files != nil || change.Recipients != nil {
				t.Errorf("a skipped change has %+v", change)
			}
			if ran := len(f.calls()); ran != 2 {
				t.Errorf("a skipped change cost %d processes, want 2: info and describe", ran)
			}
		})
	}
}

func TestNewSkipperRefuses(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]SkipRules{
		"a malformed pattern": {Users: []string{"build-["}},
		"an empty pattern":    {Users: []string{""}},
		"a local path":        {Paths: []string{"depot/..."}},
		"a blank tag":         {Tags: []string{" "}},
		"a depot":             {Paths: []string{"//depot"}},
		"a wildcard":          {Paths: []string{"//depot/*/gen"}},
	} {
		if _, err := newSkipper(rules); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
