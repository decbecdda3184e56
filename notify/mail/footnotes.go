package mail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// maxGuesses limits the files that are named with a guessed encoding, or with a note.
const maxGuesses = 5

// footnotes explains what was changed or left out: masked secrets, dropped findings,
// unread files.
func footnotes(r review.Report) []string {
	var gaps, guesses, notes []string
	for _, g := range r.Gaps {
		gaps = append(gaps, plain.Line(string(g), maxName))
	}
	for _, g := range r.Guesses[:min(len(r.Guesses), maxGuesses)] {
		guesses = append(guesses, fmt.Sprintf("%s (%s)", plain.Line(g.Path, maxPath), plain.Line(g.Charset, maxName)))
	}
	if rest := more(len(r.Guesses)-len(guesses), "file"); rest != "" {
		guesses = append(guesses, rest)
	}
	for _, n := range r.Notes[:min(len(r.Notes), maxGuesses)] {
		notes = append(notes, fmt.Sprintf("%s (%s)", plain.Line(n.Path, maxPath), plain.Line(string(n.Note), maxPath)))
	}
	if rest := more(len(r.Notes)-len(notes), "file"); rest != "" {
		notes = append(notes, rest)
	}
	lines := []string{
		redactions(r),
		sentence("Not notified (no usable email address): ", userNames(r.Unresolved)),
		sentence("Not notified (email address outside of the allowed domains): ", userNames(r.Outside)),
		dropped("finding", review.DropReasons(), r.Dropped),
		dropped("replacement", review.FixDropReasons(), r.FixesDropped),
		check(r.Check),
		sentence("Could not be read from Perforce: ", strings.Join(gaps, "; ")),
		sentence("The text encoding was guessed: ", strings.Join(guesses, ", ")),
		sentence("How files were compared: ", strings.Join(notes, ", ")),
	}
	for _, s := range r.Switches {
		lines = append(lines, fmt.Sprintf("%s answered in place of %s in %s (%s).",
			plain.Line(s.To, maxName), plain.Line(s.From, maxName), count(s.Calls, "call"), plain.Line(s.Why, maxName)))
	}
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" })
}

// sentence returns begin and list as a sentence, empty if the list is.
func sentence(begin, list string) string {
	if list == "" {
		return ""
	}
	return begin + list + "."
}

func redactions(r review.Report) string {
	if r.RedactionTotal() == 0 {
		return ""
	}
	var classes []string
	for _, c := range r.Redactions {
		classes = append(classes, fmt.Sprintf("%d %s", c.Count, c.Class))
	}
	return fmt.Sprintf("%s replaced by placeholders before the model received the change: %s.",
		count(r.RedactionTotal(), "secret"), plain.Line(strings.Join(classes, ", "), maxProse))
}

// dropped explains why findings or replacements of the model are not in the report.
func dropped(noun string, reasons []review.DropReason, counts map[review.DropReason]int) string {
	var parts []string
	total := 0
	for _, why := range reasons {
		if n := counts[why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
			total += n
		}
	}
	return sentence(count(total, noun)+" of the model dropped: ", strings.Join(parts, ", "))
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

func usage(r review.Report) string {
	u, approximately := r.Usage, ""
	if u.Estimated {
		approximately = "about "
	}
	s := fmt.Sprintf("%s, %s%d prompt and %d completion tokens", count(u.Calls, "call"), approximately, u.PromptTokens, u.CompletionTokens)
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
