package mail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// maxNotes limits the files that are named with a note.
const maxNotes = 5

// footnotes returns what the reader should know beside the findings: masked secrets, people
// without a mail, facts that could not be read.
func footnotes(r review.Report) []string {
	var gaps, notes []string
	for _, g := range r.Gaps {
		gaps = append(gaps, plain.Line(string(g), maxName))
	}
	for _, n := range r.Notes[:min(len(r.Notes), maxNotes)] {
		notes = append(notes, fmt.Sprintf("%s (%s)", plain.Line(n.Path, maxPath), plain.Line(string(n.Note), maxPath)))
	}
	if rest := more(len(r.Notes)-len(notes), "file"); rest != "" {
		notes = append(notes, rest)
	}
	lines := []string{
		redactions(r),
		sentence("Not notified (no usable email address): ", userNames(r.Unresolved)),
		sentence("Not notified (email address outside of the allowed domains): ", userNames(r.Outside)),
		sentence("Could not be read from Perforce: ", strings.Join(gaps, "; ")),
		sentence("How files were compared: ", strings.Join(notes, ", ")),
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

// about returns who wrote the review and why the reader gets it.
func about(r review.Report) []string {
	author := "No model was called."
	switch {
	case r.StandIn:
		author = ""
	case r.Usage.Asked():
		author = fmt.Sprintf("Written by a language model (%s). It makes mistakes and misses problems.", plain.Line(r.Model, maxName))
	}
	done := "submitted"
	if r.Shelved {
		done = "shelved"
	}
	why := map[review.Role]string{
		review.RoleAuthor:     "You receive this mail because you " + done + " the change.",
		review.RoleSubscriber: "You receive this mail because you follow files of the change: see the Reviews field of \u201cp4 user\u201d.",
		review.RoleOwner:      "You receive this mail because you own files of the change.",
	}[r.To]
	return slices.DeleteFunc([]string{author, why}, func(l string) bool { return l == "" })
}
