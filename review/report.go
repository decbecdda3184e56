package review

import (
	"cmp"
	"fmt"
	"slices"
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

// Rank orders severities: 0 is the worst one. An unknown one, which no report has, ranks before
// all.
func (s Severity) Rank() int { return slices.Index(Severities(), s) }

// A Category is the kind of defect of a finding.
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

// A Finding is one remark about the change. Its texts come from a model: they are
// untrusted and must pass redaction before they are stored or mailed.
type Finding struct {
	// Path is a path of the change, even if the model wrote another.
	Path string `json:"path"`
	// StartLine and EndLine are lines of the new content, computed from Quote. Both are
	// 0 if the quote was not found: the finding applies to the file.
	StartLine   int      `json:"start_line"`
	EndLine     int      `json:"end_line"`
	Severity    Severity `json:"severity"`
	Category    Category `json:"category"`
	Confidence  float64  `json:"confidence"` // 0 to 1
	Title       string   `json:"title"`
	Explanation string   `json:"explanation"`
	Suggestion  string   `json:"suggestion,omitempty"`
	// Replacement is code for the lines from StartLine to EndLine, with the line ends of
	// the file but the last, or empty. It may be shown only if ReplacementChecked is set:
	// package fix has checked it, and Quote has exactly these lines.
	Replacement        string `json:"replacement,omitempty"`
	ReplacementChecked bool   `json:"replacement_checked,omitempty"`
	// Quote is the code of the finding, verbatim from the redacted change.
	Quote  string `json:"quote,omitempty"`
	Anchor Anchor `json:"anchor,omitempty"`
	// Places are the other places of the same remark, by path and line.
	Places []Place `json:"places,omitempty"`
	// Origin is set for a finding that the review of other content reported before.
	Origin *Origin `json:"origin,omitempty"`
	// Rule is the name of the rule pack for Path, or empty.
	Rule string `json:"rule,omitempty"`
	// Before and After are up to three lines of the redacted change around Quote.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// FeedbackToken identifies the finding in feedback.
	FeedbackToken string `json:"feedback_token,omitempty"`
	// Disputed is who has marked the finding wrong, and why. It is read when the report is
	// mailed, and not stored.
	Disputed []Feedback `json:"-"`
}

// A FileNote is a [Note] on a file.
type FileNote struct {
	Path string `json:"path"`
	Note Note   `json:"note"`
}

// WithoutDeniedPaths returns r without the paths of files that the service may not
// read: their names may be secret to readers other than the author.
func (r Report) WithoutDeniedPaths() Report {
	r.Coverage = slices.Clone(r.Coverage)
	for i, f := range r.Coverage {
		if _, why := f.Worst(); why.IsDenied() || why == SkipDenied {
			r.Coverage[i].Path = ""
		}
	}
	return r
}

// Usage counts the model calls and tokens of a review.
type Usage struct {
	Calls            int `json:"calls"`
	PromptTokens     int `json:"prompt_tokens"` // including those from the provider's cache
	CompletionTokens int `json:"completion_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`
	// Kept counts the answers from the answer cache, which cost nothing.
	Kept int `json:"kept_answers,omitempty"`
	// Estimated is set if the endpoint did not report the tokens of a call.
	Estimated bool `json:"estimated,omitempty"`
	// Unproven counts the answers that did not prove that the prompt was read.
	Unproven int `json:"unproven_answers,omitempty"`
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
		Unproven:         u.Unproven + other.Unproven,
	}
}

// Tokens returns the tokens that count against a budget.
func (u Usage) Tokens() int { return u.PromptTokens + u.CompletionTokens }

// Asked reports whether a model read any part of the change.
func (u Usage) Asked() bool { return u.Calls > 0 || u.Kept > 0 }

// A Report is the result of a review. Every text in it has passed redaction.
type Report struct {
	Changelist  Changelist `json:"changelist"`
	Version     Version    `json:"review_version"`
	Author      string     `json:"author"`
	Description string     `json:"description"`
	Outcome     Outcome    `json:"outcome"`
	// Reason is why the outcome is partial or not_reviewed.
	Reason     string      `json:"reason,omitempty"`
	Findings   []Finding   `json:"findings"`
	Coverage   Coverage    `json:"coverage"`
	Unread     []Unread    `json:"unread,omitempty"` // of the lines that Coverage calls hidden
	Redactions []Redaction `json:"redactions,omitempty"`
	Unresolved []string    `json:"unresolved,omitempty"`
	// Gaps are what could not be read beside the files.
	Gaps []Gap `json:"gaps,omitempty"`
	// Notes say how the diffs of reviewed files were made.
	Notes []FileNote `json:"notes,omitempty"`
	// Restricted is set for a restricted changelist: channels are not notified.
	Restricted bool `json:"restricted,omitempty"`
	// Empty is why the changelist has no files.
	Empty EmptyReason `json:"empty,omitempty"`
	// Outside lists users with an address outside of the allowed domains.
	Outside []string `json:"outside,omitempty"`
	Record
	SubmittedAt string `json:"submitted_at"` // RFC 3339, UTC
	// ReviewedAt is when the review ended, RFC 3339, UTC. It is the date of the mail, so
	// it must not change between attempts to send.
	ReviewedAt string `json:"reviewed_at,omitempty"`
	// Context counts the code around the change that the model was shown.
	Context ContextUse `json:"context,omitzero"`
	// Shelved is set for the review of a shelf.
	Shelved bool `json:"shelved,omitempty"`
	// Earlier is the last version that had succeeded when this review began, or 0.
	// EarlierOf is its changelist, which differs if a submit renumbered a shelf.
	// Progress compares its findings, nil if its report has expired. The fields below
	// are computed when the report is mailed, and not stored.
	Earlier   Version    `json:"-"`
	EarlierOf Changelist `json:"-"`
	Progress  *Progress  `json:"-"`
	// AsShelved is set if the submit of a shelf adopted the report of the shelf's review.
	AsShelved bool  `json:"-"`
	Links     Links `json:"-"`
	// ReplyTo is the address to which a reply goes; empty: to the sender.
	ReplyTo string `json:"-"`
	// To is why the reader of this copy gets the report, or empty.
	To Role `json:"-"`
}

// Adopt turns the report of a shelf's review into the report of a submit with the same
// content. at is when the submit's review began.
func (r *Report) Adopt(submit Request, at time.Time) {
	r.Changelist, r.Version = submit.Changelist, submit.Version
	r.Shelved, r.AsShelved = false, true
	if !at.IsZero() {
		r.SubmittedAt = at.UTC().Format(time.RFC3339)
		r.ReviewedAt = r.SubmittedAt
	}
}

// A Redaction counts the masked secrets of one class.
type Redaction struct {
	Class string `json:"class"`
	Count int    `json:"count"`
}

// RedactionTotal returns the number of masked secrets.
func (r Report) RedactionTotal() int {
	n := 0
	for _, c := range r.Redactions {
		n += c.Count
	}
	return n
}

// Tally counts the files of the report.
func (r Report) Tally() Tally {
	t := r.Coverage.Tally()
	t.Reason = r.Reason
	return t
}

// Judge returns the outcome and, if not everything was reviewed, the reason. Hidden lines,
// and files that may be hidden from the reviewer's account, make the review partial. If no
// line was read, nothing was reviewed, except that a change of pictures and lock files needs
// no review. A review without findings whose model made a remark that could not be used is
// not clean.
func (r Report) Judge() (Outcome, string) {
	t := r.Coverage.Tally()
	hidden, reasons := t.In(LinesHidden)
	credited, _ := t.In(LinesCredited)
	nothing := t.Begun == 0 && credited == 0 && len(r.Findings) == 0
	needsNone := slices.ContainsFunc(t.Rest, func(row TallyRow) bool { return row.Why == SkipBinary || row.Why == SkipLockFile })
	for _, row := range t.Rest {
		needsNone = needsNone && slices.Contains([]SkipReason{SkipBinary, SkipLockFile, SkipDeleted, SkipUnchanged, SkipLineEnds}, row.Why)
	}
	switch {
	case t.Files == 0:
		return OutcomeNotReviewed, string(cmp.Or(r.Empty, EmptyNoFiles))
	case nothing && hidden > 0:
		return OutcomeNotReviewed, reasons
	case nothing && !needsNone:
		return OutcomeNotReviewed, "no file has content that can be reviewed"
	case hidden > 0:
		return OutcomePartial, fmt.Sprintf("%d of %d files were not reviewed in full", hidden, t.Files)
	case slices.Contains(r.Gaps, GapHidden):
		return OutcomePartial, "the changelist may have files that are hidden from the reviewer's account"
	case len(r.Findings) > 0:
		return OutcomeFindings, ""
	}
	if why, n := r.misread(); n > 0 {
		return OutcomePartial, fmt.Sprintf("%d of the model's remarks could not be used: %s", n, why)
	}
	return OutcomeClean, ""
}

// misread returns how many remarks were dropped for their form, which may have been about
// defects, and the first reason.
func (r Report) misread() (why DropReason, n int) {
	for _, reason := range DropReasons() {
		switch reason {
		case DropNitpick, DropMinor, DropWrong, DropDuplicate, DropRefuted, DropOverLimit:
			continue
		}
		if n += r.Dropped[reason]; why == "" && n > 0 {
			why = reason
		}
	}
	return why, n
}
