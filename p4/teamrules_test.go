package p4

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

const rulesDepot = `
-- change 1 user=ann --
Rules of the team.
-- add text //depot/team/rules.yaml --
first
-- add text //depot/team/old.yaml --
old
-- change 2 user=eve --
Change code and rules.
-- edit text //depot/team/rules.yaml --
second: look for nothing
-- delete text //depot/team/old.yaml --
-- add text //depot/src/a.c --
int a;
-- change 3 user=eve --
Later.
-- edit text //depot/src/a.c --
int b;
`

// A change is reviewed with the rules that were submitted before it.
func TestRulesAreThoseBeforeTheChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "depot.txtar")
	testkit.NoError(t, os.WriteFile(path, []byte(rulesDepot), 0o600))
	fetcher := simFetcher(t, path)
	fetcher.cfg.Rules = []string{"//depot/team/rules.yaml", "//depot/team/old.yaml", "//depot/team/none.yaml"}
	for number, want := range map[review.Changelist]string{
		1: "rules.yaml#0 , old.yaml#0 , none.yaml#0 ",
		2: "rules.yaml#1 first, old.yaml#1 old, none.yaml#0 ",
		3: "rules.yaml#2 second: look for nothing, old.yaml#0 , none.yaml#0 ",
	} {
		c, err := fetcher.Read(t.Context(), number, review.ReadOptions{})
		if got := ruleTexts(c.Rules); err != nil || got != want {
			t.Errorf("change %d: %q, error %v: want %q", number, got, err, want)
		}
	}
	now, err := fetcher.Rules(t.Context())
	if got := ruleTexts(now); err != nil || !strings.HasPrefix(got, "rules.yaml#2 second") || len(now[0].Digest) != 64 {
		t.Errorf("now: %q, error %v", got, err)
	}
}

func ruleTexts(files []review.RuleFile) string {
	var all []string
	for _, f := range files {
		all = append(all, fmt.Sprintf("%s#%d %s", filepath.Base(f.Path), f.Revision, strings.TrimSpace(f.Text)))
	}
	return strings.Join(all, ", ")
}

// A path that is not allowed is refused at the start, and again before it reaches p4. A
// long file is left out.
func TestRulesAreAllowedAndBounded(t *testing.T) {
	t.Parallel()
	list, err := NewAllowList([]string{"//depot/team/...", "//depot/src/..."}, []string{"//depot/team/secret/..."})
	testkit.NoError(t, err)
	for _, paths := range [][]string{{"//other/rules.yaml"}, {"//depot/team/secret/rules.yaml"}, {"//depot/team/..."}, {"//depot/team/*.yaml"}, {"//depot/team/a.yaml#3"}, slices.Repeat([]string{"//depot/team/a.yaml"}, maxRuleFiles+1)} {
		if checkRules(list, paths, "") == nil {
			t.Errorf("%q is accepted", paths[0])
		}
	}
	path := filepath.Join(t.TempDir(), "depot.txtar")
	testkit.NoError(t, os.WriteFile(path, []byte(strings.Replace(rulesDepot, "first", strings.Repeat("x", maxRuleBytes+1), 1)), 0o600))
	fetcher := simFetcher(t, path)
	fetcher.cfg.Rules = []string{"//depot/team/rules.yaml"}
	if c, err := fetcher.Read(t.Context(), 2, review.ReadOptions{}); err != nil || c.Rules[0].Revision != 1 || c.Rules[0].Text != "" {
		t.Errorf("a long file: %d bytes, error %v", len(c.Rules[0].Text), err)
	}
	fetcher.cfg.Rules = []string{"//other/rules.yaml"}
	if _, err := fetcher.Rules(t.Context()); failure.ClassOf(err) != failure.PathNotAllowed {
		t.Errorf("error %v", err)
	}
	if c, err := fetcher.Read(t.Context(), 2, review.ReadOptions{}); c.Rules != nil || err == nil && !slices.Contains(c.Gaps, review.GapRules) {
		t.Errorf("rules %v, gaps %v, error %v", c.Rules, c.Gaps, err)
	}
}
