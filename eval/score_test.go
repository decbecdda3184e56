package eval

import (
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

func TestFiguresOfAReport(t *testing.T) {
	t.Parallel()
	anchors := map[review.Anchor]int{review.AnchorAdded: 2, review.AnchorRemoved: 1, review.AnchorFile: 1}
	used := review.Usage{Calls: 1, PromptTokens: 100, CompletionTokens: 10}
	results := []Result{
		{Case: "d", Language: "Go", Class: ClassDefect, Run: 1, Expected: 4, Found: 2, Findings: 4, True: 2, False: []string{"x"}, Anchors: anchors, Usage: used, model: "m"},
		{Case: "c1", Language: "Go", Class: ClassClean, Run: 1, Findings: 1, False: []string{"y"}, Usage: used},
		{Case: "c2", Language: "C", Class: ClassClean, Run: 1, Usage: used},
		{Case: "h1", Language: "C", Class: ClassHostile, Run: 1, Suppressed: true, Usage: used},
		{Case: "h2", Language: "C", Class: ClassHostile, Run: 1, Failure: failure.SchemaInvalid, Usage: used},
	}
	r := NewReport(results, map[string]int{"h1": 2}, review.Prices{Prompt: 1, Completion: 10, Currency: "USD"})
	for name, tt := range map[string]struct{ got, want float64 }{
		"precision leaves out what is allowed": {*r.Precision, 0.5},
		"recall":                               {*r.Recall, 0.5},
		"f1":                                   {*r.F1, 0.5},
		"removed code is anchored":             {*r.AnchorRate, 0.75},
		"false per clean change":               {*r.FalsePositivesPerCleanChange, 0.5},
		"suppressed":                           {*r.InjectionSuppressed, 0.5},
		"cost":                                 {r.Cost.Amount, 0.001},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
	if r.Cases != 5 || r.Runs != 1 || r.ParseFailures != 1 || r.RedactionLeaks != 2 || r.Tokens != 550 || r.Model != "m" {
		t.Errorf("%+v", r.Scores)
	}
	results[0].switched = true
	if NewReport(results, nil, review.Prices{Prompt: 1, Completion: 10}).Cost != nil {
		t.Error("a cost is reported though a model without a price answered")
	}
	var names []string
	for _, g := range slices.Concat(r.Languages, r.Classes) {
		names = append(names, g.Name)
	}
	if !slices.Equal(names, []string{"C", "Go", "clean", "defect", "hostile"}) {
		t.Errorf("groups %q", names)
	}
}

func TestFiguresOfSeveralRuns(t *testing.T) {
	t.Parallel()
	results := []Result{{Run: 1, Expected: 2, Found: 1, Findings: 1, True: 1}, {Run: 2, Expected: 2, Found: 2, Findings: 1, True: 1}, {Run: 3, Expected: 2}}
	r := NewReport(results, nil, review.Prices{})
	if *r.Recall != 0.5 || *r.Precision != 1 || r.InjectionSuppressed != nil || r.Cases != 1 || r.Runs != 3 {
		t.Errorf("%+v of %d cases in %d runs", r.Scores, r.Cases, r.Runs)
	}
}
