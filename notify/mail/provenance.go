package mail

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// dropped lists why findings and replacements of the model are not in the report.
func dropped(r review.Report) (lines []string) {
	for _, d := range []struct {
		noun    string
		reasons []review.DropReason
		counts  map[review.DropReason]int
	}{{"finding", review.DropReasons(), r.Dropped}, {"replacement", review.FixDropReasons(), r.FixesDropped}} {
		var parts []string
		total := 0
		for _, why := range d.reasons {
			if n := d.counts[why]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, why))
				total += n
			}
		}
		if total > 0 {
			lines = append(lines, fmt.Sprintf("%s of the model dropped: %s.", count(total, d.noun), strings.Join(parts, ", ")))
		}
	}
	return lines
}

// check describes the result of the verification pass, empty if there was none.
func check(c *review.Check) string {
	if c == nil {
		return ""
	}
	var parts []string
	if verified := c.Checked - c.Failed; verified > 0 {
		parts = append(parts, fmt.Sprintf("Verification of %s by a second model call: %d removed, %d lowered in severity.",
			count(verified, "finding"), c.Removed, c.Lowered))
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("Verification of %s failed (%s).", count(c.Failed, "finding"), plain.Line(c.Why, maxName)))
	}
	return strings.Join(parts, " ")
}

// switches lists the models that answered in place of the configured one.
func switches(all []review.Switch) (lines []string) {
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%s answered in place of %s in %s (%s).",
			plain.Line(s.To, maxName), plain.Line(s.From, maxName), count(s.Calls, "call"), plain.Line(s.Why, maxName)))
	}
	return lines
}

// maxGuesses limits the files that are named with a guessed encoding.
const maxGuesses = 5

// readingNotes says what could not be read, and which text may have been read wrong.
func readingNotes(r review.Report) (lines []string) {
	var gaps, guesses []string
	for _, g := range r.Gaps {
		gaps = append(gaps, plain.Line(string(g), maxName))
	}
	for _, g := range r.Guesses[:min(len(r.Guesses), maxGuesses)] {
		guesses = append(guesses, fmt.Sprintf("%s (%s)", plain.Line(g.Path, maxPath), plain.Line(g.Charset, maxName)))
	}
	if rest := more(len(r.Guesses)-len(guesses), "file"); rest != "" {
		guesses = append(guesses, rest)
	}
	if gaps != nil {
		lines = append(lines, "Could not be read from Perforce: "+strings.Join(gaps, "; ")+".")
	}
	if guesses != nil {
		lines = append(lines, "The text encoding was guessed: "+strings.Join(guesses, ", ")+".")
	}
	return lines
}

// usage describes what all attempts of the review used.
func usage(r review.Report) string {
	u, about := r.Usage, ""
	if u.Estimated {
		about = "about "
	}
	s := fmt.Sprintf("%s, %s%d prompt and %d completion tokens", count(u.Calls, "call"), about, u.PromptTokens, u.CompletionTokens)
	if u.CachedTokens > 0 {
		s += fmt.Sprintf(", %d of them cached by the provider", u.CachedTokens)
	}
	if u.Kept > 0 {
		s += fmt.Sprintf(", %s from the answer cache", count(u.Kept, "answer"))
	}
	if r.Cost != nil {
		s += fmt.Sprintf(", %.4f %s", r.Cost.Amount, plain.Line(r.Cost.Currency, maxName))
	}
	return s
}
