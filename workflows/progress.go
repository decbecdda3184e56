package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// A Progress is how far a review has come, the answer to [contract.QueryState]. It holds no content of the change; its field
// names are wire format.
type Progress struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Author     string            `json:"author,omitempty"` // a person or a bot; empty before fetch
	Link       string            `json:"link,omitempty"`   // to the change, for people
	Stage      review.Stage      `json:"stage,omitempty"`
	Now        string            `json:"now"` // what the review does or waits for, or how it ended
}

// details is the text of the Temporal UI, in Markdown.
func (p Progress) details() string {
	change := p.Changelist.String()
	if p.Link != "" {
		change = fmt.Sprintf("[%s](%s)", change, p.Link)
	}
	by := ""
	if p.Author != "" {
		by = ", by " + p.Author
	}
	return fmt.Sprintf("Changelist %s%s, review version %d: **%s**\n\n*Pending Activities* has attempts, the last failure and the next attempt. "+
		"Why it waits, how it ended, and what to do: criticizer why %d", change, by, p.Version, p.Now, p.Changelist)
}

// show makes now the current details of the review. It adds nothing to the history.
func (r *reviewState) show(ctx workflow.Context, now string) {
	r.progress.Version, r.progress.Now = r.req.Version, now
	workflow.SetCurrentDetails(ctx, r.progress.details())
}

func (r *reviewState) showOutcome(ctx workflow.Context, outcome review.Outcome) error {
	now := "done: " + string(outcome)
	if r.skipped != "" {
		now += ", skipped: " + string(r.skipped)
	}
	r.show(ctx, now)
	return workflow.UpsertTypedSearchAttributes(ctx, contract.AttributeOutcome.ValueSet(string(outcome)))
}

// summaries describe the activities in the Temporal UI, by activity ID without a number.
var summaries = map[string]string{
	"open":        "open the job",
	"fetch":       "read the changelist from Perforce",
	"compare":     "compare with existing reviews",
	"adopt":       "use the report of the shelf's review",
	"redact":      "mask secrets",
	"llm":         "call the model",
	"notify":      "send the mails",
	"finish":      "mark the job succeeded",
	"skip":        "mark the job skipped",
	"cancel":      "mark the job canceled",
	"dead-letter": "record the dead letter",
	"replay":      "record the replay",
	"outdated":    "list the reviews of former contents",
	"reserve":     "reserve the next review version",
	"find-mark":   "read where the last search ended",
	"list":        "list submitted changelists",
	"raise":       "store where the search ended",
}

func summaryOf(activityID string) string {
	id := strings.TrimRight(activityID, "-0123456789")
	if channel, ok := strings.CutPrefix(id, "notify-"); ok {
		return "post to the channel " + channel
	}
	return summaries[id]
}
