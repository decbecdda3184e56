package mail

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// A mail says what was left out of it, what was checked and by whom, and what
// the review cost, where that is known.
func TestMailTellsHowItWasMade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*review.Report)
		says   []string
		not    []string
	}{
		"nothing to tell": {func(*review.Report) {}, []string{"2 calls, 5120 prompt"}, []string{"left out", "second look", "instead of", "USD", "Also at", "kept"}},
		"remarks left out": {
			func(r *review.Report) {
				r.Dropped = map[review.DropReason]int{review.DropMinor: 2, review.DropUnknownPath: 1}
			}, []string{"3 remarks of the model left out: 1 about a file the model was not shown, 2 below the least severity."}, nil,
		},
		"checked": {
			func(r *review.Report) { r.Check = &review.Check{Looked: 4, Removed: 2, Lowered: 1} },
			[]string{"A second look tried to refute 4 findings: 2 removed, 1 lowered."},
			[]string{"Unverified"},
		},
		"not checked, for it failed": {
			func(r *review.Report) { r.Check = &review.Check{Looked: 3, Failed: 3, Why: "UPSTREAM_UNAVAILABLE"} },
			[]string{"Unverified: the second look at 3 findings failed (UPSTREAM_UNAVAILABLE)."},
			[]string{"tried to refute"},
		},
		"another model": {
			func(r *review.Report) {
				r.Switches = []review.Switch{{From: "m-1", To: "m-2", Why: "CONTENT_POLICY", Calls: 1}}
			}, []string{"m-2 was asked instead of m-1 in 1 call: CONTENT_POLICY."}, nil,
		},
		"cost": {func(r *review.Report) { r.Cost = &review.Cost{Amount: 0.01234, Currency: "EUR"} }, []string{"0.0123 EUR"}, nil},
		"answers kept": {
			func(r *review.Report) { r.Usage = review.Usage{Kept: 2} },
			[]string{"0 calls", "2 answers kept from earlier", "Written by a language model"},
			[]string{"no model was asked"},
		},
		"estimated usage": {func(r *review.Report) { r.Usage.Estimated = true }, []string{"about 5120 prompt"}, nil},
		"other places": {
			func(r *review.Report) {
				for range maxPlaces + 2 {
					r.Findings[0].Places = append(r.Findings[0].Places, review.Place{Path: "//depot/other.go", StartLine: 7, EndLine: 7})
				}
			}, []string{"Also at", "//depot/other.go:7", "2 more places"}, nil,
		},
		"code that was not changed": {func(r *review.Report) { r.Findings[0].Anchor = review.AnchorContext }, []string{"code the change does not touch"}, nil},
		"no line":                   {func(r *review.Report) { r.Findings[2].Anchor = review.AnchorFile }, []string{"no line known"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := findingsReport()
			test.change(&r)
			m, err := Render(r, testKey, testFrom, testDomain)
			if err != nil {
				t.Fatal(err)
			}
			_, text, html := parts(t, m)
			for form, body := range map[string]string{"text": strings.Join(strings.Fields(text), " "), "HTML": html} {
				for _, want := range test.says {
					if !strings.Contains(body, want) {
						t.Errorf("the %s does not say %q", form, want)
					}
				}
				for _, lie := range test.not {
					if strings.Contains(body, lie) {
						t.Errorf("the %s says %q", form, lie)
					}
				}
			}
		})
	}
}
