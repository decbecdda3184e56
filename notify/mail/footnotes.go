package mail

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// footnotes returns what the reader should know beside the findings: masked secrets, people
// without a mail, facts that could not be read, who wrote the review, and why the reader gets it.
func footnotes(r review.Report) (lines []string) {
	add := func(begin string, list ...string) {
		if text := strings.Join(list, ", "); text != "" {
			lines = append(lines, begin+text+".")
		}
	}
	var classes []string
	for _, c := range r.Redactions {
		classes = append(classes, fmt.Sprintf("%d %s", c.Count, c.Class))
	}
	add(post.Count(r.RedactionTotal(), "secret")+" replaced by placeholders before the model received the change: ",
		plain.Line(strings.Join(classes, ", "), maxProse))
	add("Not notified (no usable email address): ", listed(r.Unresolved, maxUnresolved, "user", userName)...)
	add("Not notified (email address outside of the allowed domains): ", listed(r.Outside, maxUnresolved, "user", userName)...)
	add("Could not be read from Perforce: ", strings.Join(listed(r.Gaps, len(r.Gaps), "", func(g review.Gap) string {
		return plain.Line(string(g), maxName)
	}), "; "))
	add("How files were compared: ", listed(r.Notes, maxNotes, "file", func(n review.FileNote) string {
		return fmt.Sprintf("%s (%s)", plain.Line(n.Path, maxPath), plain.Line(string(n.Note), maxPath))
	})...)
	switch {
	case r.StandIn: // the mail begins with it
	case r.Usage.Asked():
		lines = append(lines, fmt.Sprintf("Written by a language model (%s). It makes mistakes and misses problems.", plain.Line(r.Model, maxName)))
	default:
		lines = append(lines, "No model was called.")
	}
	done := "submitted"
	if r.Shelved {
		done = "shelved"
	}
	switch r.To {
	case review.RoleAuthor:
		lines = append(lines, "You receive this mail because you "+done+" the change.")
	case review.RoleSubscriber:
		lines = append(lines, "You receive this mail because you follow files of the change: see the Reviews field of “p4 user”.")
	case review.RoleOwner:
		lines = append(lines, "You receive this mail because you own files of the change.")
	}
	return lines
}
