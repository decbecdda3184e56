package main

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// newFeedbackEnvironment has a database with two findings; it returns their tokens.
func newFeedbackEnvironment(t *testing.T) (env map[string]string, first, second string) {
	t.Helper()
	d := storetest.New(t)
	findings, err := d.Open(t, store.RoleLLM).ReportFindings(t.Context(), 4711, 1, []review.Finding{
		{Path: "//depot/a.go", Rule: "go", Severity: review.SeverityLow, Category: review.CategoryTesting, Quote: "a"},
		{Path: "//depot/b.sql", Severity: review.SeverityHigh, Category: review.CategorySecurity, Quote: "b"},
	})
	testkit.NoError(t, err)
	env = map[string]string{"CRITICIZER_CONFIG": emptyFile(t), "CRITICIZER_DATABASE_URL": d.URL.Reveal(), "SUDO_USER": "olga"}
	return env, findings[0].FeedbackToken, findings[1].FeedbackToken
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	env, token, _ := newFeedbackEnvironment(t)
	const finding = "low testing in //depot/a.go, rule go, changelist 4711 v1"
	for _, step := range []struct {
		args []string
		says []string
	}{
		{[]string{"list"}, []string{"there is no feedback"}},
		{[]string{"accept", strings.ToUpper(token), "--reason", "the caller  tests it"}, []string{finding + ": it is not reported there again\n"}},
		{[]string{"list"}, []string{"TOKEN", token, "olga@", "wrong", finding, "the caller tests it"}},
		{[]string{"list", "--json"}, []string{`"token": "` + token, `"path": "//depot/a.go"`, `"accepted_by": "olga@`}},
		{[]string{"forget", token, "--reason", "it is a defect"}, []string{finding + ": its opinions are removed"}},
		{[]string{"list"}, []string{"there is no feedback"}},
	} {
		got := say(t, env, append([]string{"feedback"}, step.args...)...)
		if got.status != 0 || got.err != "" {
			t.Fatalf("%v: status %d, %q", step.args, got.status, got.err)
		}
		contains(t, got.out, step.says...)
	}
}

// A path is text from outside.
func TestFeedbackCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	findings, err := d.Open(t, store.RoleLLM).ReportFindings(t.Context(), 4711, 1, []review.Finding{
		{Path: "//depot/\x1b[2J.go", Severity: review.SeverityLow, Category: review.CategoryTesting, Quote: "a"},
	})
	testkit.NoError(t, err)
	env := map[string]string{"CRITICIZER_CONFIG": emptyFile(t), "CRITICIZER_DATABASE_URL": d.URL.Reveal(), "SUDO_USER": "olga"}
	for _, args := range [][]string{{"accept", findings[0].FeedbackToken, "--reason", "x"}, {"list"}, {"forget", findings[0].FeedbackToken, "--reason", "x"}} {
		got := say(t, env, append([]string{"feedback"}, args...)...)
		if got.status != 0 || strings.Contains(got.out+got.err, "\x1b") {
			t.Errorf("%v: status %d, %q", args, got.status, got.out+got.err)
		}
	}
}

func TestFeedbackRejects(t *testing.T) {
	t.Parallel()
	env, token, _ := newFeedbackEnvironment(t)
	for name, tt := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"not a token":          {[]string{"accept", "4711", "--reason", "x"}, 2, `"4711" is not a token`},
		"an unknown token":     {[]string{"accept", "aaaaaaaaaaaaa", "--reason", "x"}, 1, "no finding has the token aaaaaaaaaaaaa"},
		"no reason":            {[]string{"accept", token}, 2, "reason"},
		"forget what is not":   {[]string{"forget", "aaaaaaaaaaaaa", "--reason", "x"}, 1, "no finding has the token aaaaaaaaaaaaa"},
		"forget nothing":       {[]string{"forget"}, 2, "wants TOKEN"},
		"a secret as a reason": {[]string{"accept", token, "--reason", "ghp_" + strings.Repeat("a1B2c3", 6)}, 1, "--reason seems to contain a secret"},
	} {
		checkRefusal(t, name, say(t, env, append([]string{"feedback"}, tt.args...)...), tt.status, tt.says)
	}
	if got := say(t, env, "feedback", "list"); got.out != "there is no feedback\n" {
		t.Errorf("something was recorded: %s", got.out)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	env, first, _ := newFeedbackEnvironment(t)
	if got := say(t, env, "feedback", "accept", first, "--reason", "x"); got.status != 0 {
		t.Fatal(got.err)
	}
	got := say(t, env, "stats")
	if got.status != 0 {
		t.Fatal(got.err)
	}
	var rows []string
	for line := range strings.Lines(got.out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	contains(t, strings.Join(rows, "\n")+"\n", "all - 2 0 1 100%",
		"category security 1 0 0 -", "category testing 1 0 1 100%", "rule - 1 0 0 -", "rule go 1 0 1 100%", "severity high 1 0 0 -", "severity low 1 0 1 100%")
	contains(t, say(t, env, "stats", "--json", "--days", "1").out, `"by": "all"`, `"reported": 2`)
	if got := say(t, env, "stats", "--days", "0"); got.status != 2 {
		t.Errorf("no days: status %d, %q", got.status, got.err)
	}
}
