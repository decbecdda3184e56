package main

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

func TestMakingRows(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, row := range makingRows(&review.Record{
		Model: "m-1", PromptDigest: strings.Repeat("ab", 32),
		Usage:    review.Usage{Calls: 3, PromptTokens: 700, CompletionTokens: 50, CachedTokens: 100, Kept: 1},
		Anchors:  map[review.Anchor]int{review.AnchorFile: 1, review.AnchorAdded: 4},
		Dropped:  map[review.DropReason]int{review.DropMinor: 2, review.DropUnknownPath: 1},
		Check:    &review.Check{Looked: 3, Removed: 1, Failed: 2, Why: "RATE_LIMITED"},
		Switches: []review.Switch{{From: "m-1", To: "m-2", Why: "CONTENT_POLICY", Calls: 1}},
		Cost:     &review.Cost{Amount: 0.0021, Currency: "USD"},
	}) {
		lines = append(lines, strings.Join(row, ": "))
	}
	want := `model: m-1, prompt abababababab
used: 3 calls, 1 answer kept, tokens in 700, out 50, cached 100, 0.0021 USD
anchors: 4 added, 1 file
dropped: 1 about a file the model was not shown, 2 below the least severity
second look: at 3: 1 removed, 0 lowered, 0 without evidence, 2 failed RATE_LIMITED
fallbacks: m-2 for m-1 in 1 call, CONTENT_POLICY`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if rows := makingRows(nil); rows != nil {
		t.Errorf("a review nobody made yet has %v", rows)
	}
}
