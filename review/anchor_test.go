package review

import (
	"encoding/json"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// The fingerprint is wire format.
func TestFindingIsWrittenWithItsFingerprint(t *testing.T) {
	t.Parallel()
	f := finding("//depot/a.go", "one()")
	f.Places = []Place{{Path: "//depot/b.go", Fingerprint: "other"}}
	data, err := json.Marshal(Report{Findings: []Finding{f}})
	testkit.NoError(t, err)
	var read struct{ Findings []map[string]any }
	testkit.NoError(t, json.Unmarshal(data, &read))
	if got := read.Findings[0]["fingerprint"]; got != f.Fingerprint() {
		t.Errorf("written as %v, want %s", got, f.Fingerprint())
	}
	var again Report
	if err := json.Unmarshal(data, &again); err != nil || again.Findings[0].Fingerprint() != f.Fingerprint() || again.Findings[0].Places[0].Fingerprint != "other" {
		t.Errorf("read back as %+v, error %v", again.Findings, err)
	}
}

// A finding with several places is open while it is at one of them.
func TestCompareUsesAllPlaces(t *testing.T) {
	t.Parallel()
	first, second := finding("a.go", "x"), finding("b.go", "x")
	both := first
	both.Places = []Place{second.Place()}
	all := Report{Outcome: OutcomeFindings}
	with := func(f ...Finding) Report { r := all; r.Findings = f; return r }
	if p := Compare(with(both), with(second)); p.New != 0 || p.StillOpen != 1 || len(p.Resolved) != 0 {
		t.Errorf("one of two places is left: %+v", p)
	}
	if p := Compare(with(both), with()); len(p.Resolved) != 1 {
		t.Errorf("no place is left: %+v", p)
	}
	partly := all
	partly.Outcome, partly.Coverage = OutcomePartial, Coverage{NewFileCoverage("b.go", "", SkipOverBudget)}
	if p := Compare(with(both), partly); len(p.Resolved) != 0 || len(p.Unchecked) != 1 {
		t.Errorf("one of two files was not read: %+v", p)
	}
}

func TestPricesAreRefusedWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Prices{
		"": {}, "2.00 0.50 8.00 USD": {2, 0.5, 8, "USD"}, " 2 0  8e0 EUR ": {Prompt: 2, Completion: 8, Currency: "EUR"},
	} {
		if p, err := ParsePrices(text); p != want || err != nil {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{
		"2", "2 0.5 8", "2 0.5 8 USD extra", "2,00 0,50 8,00 USD", "-2 0.5 8 USD", "2 NaN 8 USD", "2 0.5 Inf USD", "USD 2 0.5 8", "2 0.5 8 $", "2 0.5 8 9",
	} {
		if p, err := ParsePrices(text); err == nil || p != (Prices{}) {
			t.Errorf("%q gives %+v", text, p)
		}
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	p := Prices{Prompt: 2, Completion: 8, Cached: 0.5, Currency: "EUR"}
	got := p.Of(Usage{PromptTokens: 1_000_000, CachedTokens: 400_000, CompletionTokens: 250_000})
	if got == nil || *got != (Cost{Amount: 3.4, Currency: "EUR"}) {
		t.Errorf("got %+v, want 3.4 EUR: 1.2 fresh, 0.2 cached, 2 for answers", got)
	}
	if got := p.Of(Usage{PromptTokens: 1, CachedTokens: 2}); got != nil {
		t.Errorf("more cached than sent costs %+v", got)
	}
}
