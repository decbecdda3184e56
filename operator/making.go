package main

import (
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// makingRows tell how a review was made: by which model, at what cost, and what
// became of what the model said.
func makingRows(r *review.Record) [][]string {
	if r == nil {
		return nil
	}
	rows := [][]string{{"model", fmt.Sprintf("%s, prompt %.12s", printable(r.Model), r.PromptDigest)}, {"used", usedLine(r)}}
	if line := tallyLine([]review.Anchor{review.AnchorAdded, review.AnchorContext, review.AnchorRemoved, review.AnchorFile}, r.Anchors); line != "" {
		rows = append(rows, []string{"anchors", line})
	}
	if line := tallyLine(review.DropReasons(), r.Dropped); line != "" {
		rows = append(rows, []string{"dropped", line})
	}
	if c := r.Check; c != nil {
		rows = append(rows, []string{"second look", fmt.Sprintf("at %d: %d removed, %d lowered, %d without evidence, %d failed %s",
			c.Looked, c.Removed, c.Lowered, c.Rejected, c.Failed, c.Why)})
	}
	for i, s := range r.Switches {
		rows = append(rows, []string{atFirst(i, "fallbacks"), fmt.Sprintf("%s for %s in %s, %s", s.To, s.From, plural(s.Calls, "call"), s.Why)})
	}
	return rows
}

func usedLine(r *review.Record) string {
	u := r.Usage
	line := fmt.Sprintf("%s, %s kept, tokens in %d, out %d, cached %d",
		plural(u.Calls, "call"), plural(u.Kept, "answer"), u.PromptTokens, u.CompletionTokens, u.CachedTokens)
	if u.Estimated {
		line += " (estimated)"
	}
	if r.Cost != nil {
		line += fmt.Sprintf(", %.4f %s", r.Cost.Amount, r.Cost.Currency)
	}
	return line
}

// tallyLine lists what was counted, in the order of all.
func tallyLine[K ~string](all []K, counts map[K]int) string {
	var parts []string
	for _, k := range all {
		if n := counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	return strings.Join(parts, ", ")
}
