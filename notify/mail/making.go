package mail

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// How the report came to be: what was left out of it and why, whether findings
// were checked, who answered, and what it cost.

// leftOut says which remarks of the model are not shown, empty for none.
func leftOut(r review.Report) string {
	var parts []string
	total := 0
	for _, why := range review.DropReasons() {
		if n := r.Dropped[why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
			total += n
		}
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the model left out: %s.", count(total, "remark"), strings.Join(parts, ", "))
}

// checked says what a second look made of the findings, empty if there was none.
func checked(c *review.Check) string {
	if c == nil {
		return ""
	}
	looked := c.Looked - c.Failed
	var said []string
	if looked > 0 {
		said = append(said, fmt.Sprintf("A second look tried to refute %s: %d removed, %d lowered.", count(looked, "finding"), c.Removed, c.Lowered))
	}
	if c.Failed > 0 {
		said = append(said, fmt.Sprintf("Unverified: the second look at %s failed (%s).", count(c.Failed, "finding"), line(c.Why, maxName)))
	}
	return strings.Join(said, " ")
}

// switched says which models answered in place of the one configured.
func switched(switches []review.Switch) (said []string) {
	for _, s := range switches {
		said = append(said, fmt.Sprintf("%s was asked instead of %s in %s: %s.",
			line(s.To, maxName), line(s.From, maxName), count(s.Calls, "call"), line(s.Why, maxName)))
	}
	return said
}

// usage says what the review used, in all its attempts.
func usage(r review.Report) string {
	u, about := r.Usage, ""
	if u.Estimated {
		about = "about "
	}
	said := fmt.Sprintf("%s, %s%d prompt and %d completion tokens", count(u.Calls, "call"), about, u.PromptTokens, u.CompletionTokens)
	if u.CachedTokens > 0 {
		said += fmt.Sprintf(", %d from a cache", u.CachedTokens)
	}
	if u.Kept > 0 {
		said += fmt.Sprintf(", %s kept from earlier", count(u.Kept, "answer"))
	}
	if r.Cost != nil {
		said += fmt.Sprintf(", %.4f %s", r.Cost.Amount, line(r.Cost.Currency, maxName))
	}
	return said
}
