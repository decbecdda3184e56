package review

import (
	"fmt"
	"time"
)

// A Severity ranks findings.
type Severity string

// The severities, worst first. They are wire format: the model answers with them.
const (
	SeverityCritical Severity = "critical"
	SeverityHigh     Severity = "high"
	SeverityMedium   Severity = "medium"
	SeverityLow      Severity = "low"
)

// Severities lists all severities, worst first.
func Severities() []Severity {
	return []Severity{SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow}
}

// A Category says what kind of defect a finding is.
type Category string

// The categories of findings. They are wire format: the model answers with them.
const (
	CategoryCorrectness     Category = "correctness"
	CategorySecurity        Category = "security"
	CategoryConcurrency     Category = "concurrency"
	CategoryPerformance     Category = "performance"
	CategoryErrorHandling   Category = "error_handling"
	CategoryTesting         Category = "testing"
	CategoryMaintainability Category = "maintainability"
)

// Categories lists all categories.
func Categories() []Category {
	return []Category{
		CategoryCorrectness, CategorySecurity, CategoryConcurrency, CategoryPerformance,
		CategoryErrorHandling, CategoryTesting, CategoryMaintainability,
	}
}

// A Finding is one remark about one place. Its texts came from a model: they
// are untrusted and must pass redaction before they are stored or mailed.
type Finding struct {
	// Path is a path of the change, never one the model made up.
	Path string `json:"path"`
	// StartLine and EndLine are lines of the new content, computed by us from
	// Quote; both are 0 when the quote was not found and the finding is about
	// the whole file.
	StartLine   int      `json:"start_line"`
	EndLine     int      `json:"end_line"`
	Severity    Severity `json:"severity"`
	Category    Category `json:"category"`
	Confidence  float64  `json:"confidence"` // 0 to 1
	Title       string   `json:"title"`
	Explanation string   `json:"explanation"`
	Suggestion  string   `json:"suggestion,omitempty"`
	// Quote is the code the finding speaks about, verbatim from the redacted change.
	Quote string `json:"quote,omitempty"`
	// Anchor says how its place was found; empty in reports of earlier releases.
	Anchor Anchor `json:"anchor,omitempty"`
	// Places are the other places of the same remark, in the order of their
	// paths and lines.
	Places []Place `json:"places,omitempty"`
	// Rule is the rule pack that counts for Path, empty if none does.
	Rule string `json:"rule,omitempty"`
	// FeedbackToken names the finding where readers say what they think of it.
	FeedbackToken string `json:"feedback_token,omitempty"`
}

// An Omission is a file that was not reviewed, with the reason.
type Omission struct {
	Path   string     `json:"path"`
	Reason SkipReason `json:"reason"`
}

// Usage counts what a review cost.
type Usage struct {
	Calls            int `json:"calls"`
	PromptTokens     int `json:"prompt_tokens"` // those from the provider's cache included
	CompletionTokens int `json:"completion_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`
	// Kept counts the answers that were kept from earlier and not paid again.
	Kept int `json:"kept_answers,omitempty"`
	// Estimated is set if the endpoint did not say what a call used.
	Estimated bool `json:"estimated,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Calls:            u.Calls + other.Calls,
		PromptTokens:     u.PromptTokens + other.PromptTokens,
		CompletionTokens: u.CompletionTokens + other.CompletionTokens,
		CachedTokens:     u.CachedTokens + other.CachedTokens,
		Kept:             u.Kept + other.Kept,
		Estimated:        u.Estimated || other.Estimated,
	}
}

// Tokens is what counts against a budget.
func (u Usage) Tokens() int { return u.PromptTokens + u.CompletionTokens }

// Asked reports whether a model read any of the change.
func (u Usage) Asked() bool { return u.Calls > 0 || u.Kept > 0 }

// A Report is what is mailed. Every text in it has passed redaction.
type Report struct {
	Changelist  Changelist `json:"changelist"`
	Version     Version    `json:"review_version"`
	Author      string     `json:"author"`
	Description string     `json:"description"`
	Outcome     Outcome    `json:"outcome"`
	// Reason says why a review is partial or not_reviewed as a whole.
	Reason      string      `json:"reason,omitempty"`
	Findings    []Finding   `json:"findings"`
	Omissions   []Omission  `json:"omissions,omitempty"`
	FilesTotal  int         `json:"files_total"`
	FilesRead   int         `json:"files_reviewed"`
	Redactions  []Redaction `json:"redactions,omitempty"`
	Unresolved  []string    `json:"unresolved,omitempty"`
	Model       string      `json:"model"`
	Usage       Usage       `json:"usage"`
	SubmittedAt string      `json:"submitted_at"` // RFC 3339, UTC
	// ReviewedAt is when the review ended. It dates the mail, so it must be
	// fixed before the first attempt to send. RFC 3339, UTC.
	ReviewedAt   string `json:"reviewed_at,omitempty"`
	PromptDigest string `json:"prompt_digest,omitempty"`
	// Dropped counts the model's remarks that became no finding.
	Dropped map[DropReason]int `json:"dropped,omitempty"`
	// Check counts the results of the verification pass, nil if there was
	// to be none.
	Check *Check `json:"check,omitempty"`
	// Switches tell where another model answered than the one configured.
	Switches []Switch `json:"switches,omitempty"`
	// Cost is nil where it cannot be told exactly.
	Cost *Cost `json:"cost,omitempty"`
	// Shelved is set if the change was shelved, not submitted.
	Shelved bool `json:"shelved,omitempty"`
	// Earlier is the last version of the review that had succeeded when this
	// one began, 0 if there is none, EarlierOf its changelist, which is another one
	// if a shelf was renumbered by its submit, and Progress what became of its
	// findings, nil if that is no longer known. They are worked out when the report
	// is mailed, and not stored.
	Earlier   Version    `json:"-"`
	EarlierOf Changelist `json:"-"`
	Progress  *Progress  `json:"-"`
	// AsShelved is set if the report is that of a shelf's review, adopted by the
	// submit of the same content when it is mailed.
	AsShelved bool `json:"-"`
	// Feedback is where readers can answer. It is filled in when the report is
	// mailed, and not stored.
	Feedback FeedbackLinks `json:"-"`
}

// Adopt makes the report of a shelf's review that of the submit of the same content,
// whose review began at at.
func (r *Report) Adopt(submit Request, at time.Time) {
	r.Changelist, r.Version = submit.Changelist, submit.Version
	r.Shelved, r.AsShelved = false, true
	if !at.IsZero() {
		r.SubmittedAt = at.UTC().Format(time.RFC3339)
		r.ReviewedAt = r.SubmittedAt
	}
}

// A Redaction counts the secrets of one class that were kept from the model.
type Redaction struct {
	Class string `json:"class"`
	Count int    `json:"count"`
}

// RedactionTotal is the number of secrets kept from the model.
func (r Report) RedactionTotal() int {
	n := 0
	for _, c := range r.Redactions {
		n += c.Count
	}
	return n
}

// Judge says how the review ended and, when not everything was reviewed, why.
// A file without new content (deleted, unchanged, integrated as it was) leaves
// nothing to review; any other file that was not read whole makes the review
// partial, also one that nobody accounted for.
func (r Report) Judge() (Outcome, string) {
	empty := 0
	for _, o := range r.Omissions {
		if o.Reason.IsEmpty() {
			empty++
		}
	}
	missed := max(len(r.Omissions)-empty, r.FilesTotal-r.FilesRead-empty)
	switch {
	case r.FilesTotal == 0:
		return OutcomeNotReviewed, "the changelist shows no files to the reviewer's account"
	case r.FilesRead == 0 && r.deniedOnly():
		return OutcomeNotReviewed, string(SkipNotAllowed)
	case r.FilesRead == 0 && len(r.Findings) == 0 && r.overBudget() != "":
		return OutcomeNotReviewed, string(r.overBudget())
	case r.FilesRead == 0 && len(r.Findings) == 0:
		return OutcomeNotReviewed, "no file has content that can be reviewed"
	case missed > 0:
		return OutcomePartial, fmt.Sprintf("%d of %d files were not reviewed", missed, r.FilesTotal)
	case len(r.Findings) > 0:
		return OutcomeFindings, ""
	}
	return OutcomeClean, ""
}

func (r Report) deniedOnly() bool {
	for _, o := range r.Omissions {
		if o.Reason != SkipNotAllowed {
			return false
		}
	}
	return len(r.Omissions) > 0
}

// overBudget is why there were no tokens for a file, empty if there were for all.
func (r Report) overBudget() SkipReason {
	for _, o := range r.Omissions {
		if o.Reason == SkipOverBudget || o.Reason == SkipOverDay {
			return o.Reason
		}
	}
	return ""
}
