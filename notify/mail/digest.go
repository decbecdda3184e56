package mail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Limits of untrusted text, in characters or items. Together they keep a digest with one
// finding below maxHTML for any text.
const (
	maxSubject     = 100
	maxName        = 80
	maxPath        = 300
	maxTitle       = 200
	maxDescription = 1000
	maxProse       = 2000
	maxQuoteLines  = 20
	maxQuoteLine   = 160
	maxUnread      = 40
	maxUnresolved  = 20
	maxResolved    = 10
	maxPlaces      = 10
	maxNotes       = 5
)

// A digest is the data of the templates. Every text from the change or the model
// has passed plain.Text or plain.Line.
type digest struct {
	Subject     string
	Changelist  string // such as Change 4711, or Commits
	Link        string // to the change, empty if none is configured
	Author      string
	Submitted   string
	Done        string // submitted or shelved
	Description string

	Headline string // the outcome in a few words
	Tone     tone
	Coverage string // how much was reviewed
	Aside    string // what was not read although nothing is missing
	Reason   string // why not everything was reviewed
	Counts   string // "1 critical, 2 low"
	Progress *progressView
	Note     string // which review the findings are of, if not of this change

	Findings []findingView
	// Withheld counts the findings that did not fit, empty if all did.
	Withheld string
	withheld int // beyond Findings

	Unread []unreadGroup

	Footnotes []string
	Help      string // link to a page about these mails
	StandIn   string // who answered in place of a model, empty if a model did
}

// A tone is the color of the headline. Only a clean review gets the tone good.
type tone string

const (
	toneGood tone = "good"
	toneWarn tone = "warn"
	toneBad  tone = "bad"
)

// newDigest describes r with at most maxFindings of its findings, worst first.
func newDigest(r review.Report, cfg Config) digest {
	findings, more := post.Worst(r, maxFindings)
	d := digest{
		Subject:     subject(r),
		Changelist:  "Change " + r.Changelist.String(),
		Link:        r.Links.ToChange(r.Changelist),
		Author:      userName(r.Author),
		Submitted:   submitted(r.SubmittedAt),
		Done:        "submitted",
		Description: strings.TrimSpace(plain.Text(r.Description, maxDescription)),
		Headline:    post.Headline(r),
		Tone:        toneOf(r),
		Coverage:    plain.Line(r.Tally().Text(), maxProse),
		Aside:       plain.Line(r.Tally().Aside(), maxProse),
		Reason:      plain.Line(r.Reason, maxProse),
		Counts:      severityCounts(r.Findings),
		Progress:    newProgressView(r.Progress),
		withheld:    more,
		Footnotes:   footnotes(r),
		Unread:      unread(r.Coverage),
		Help:        cfg.HelpURL,
	}
	if hidden, _ := r.Tally().In(review.LinesHidden); hidden > 0 {
		d.Reason = "" // Coverage has it
	}
	if len(r.Coverage) == 0 && d.Reason != "" { // a notice: no file was read
		d.Coverage, d.Reason = d.Reason+".", ""
	}
	if r.StandIn {
		d.StandIn = fmt.Sprintf("No language model has read this change: a stand-in (%s) answered in its place.", plain.Line(r.Model, maxName))
	}
	if r.Shelved {
		d.Done = "shelved"
	}
	if r.Changelist == 0 {
		d.Changelist = "Commits" // of git, in a preview
	}
	if r.AsShelved {
		d.Note = "The submitted change is identical to the reviewed shelf. The findings come from that review."
	}
	for i, f := range findings {
		v := newFindingView(f)
		v.Number = i + 1
		v.Age, v.Link = age(r.Progress, f), r.Links.ToFile(r.Changelist, f.Place())
		if to := cfg.feedbackAddress(); to != "" && f.FeedbackToken != "" {
			for _, o := range review.Opinions() {
				v.Answers = append(v.Answers, answer{string(o), feedbackLink(to, f.FeedbackToken, o)})
			}
		}
		d.Findings = append(d.Findings, v)
	}
	return d
}

// first returns d with the first n of its findings.
func (d digest) first(n int) digest {
	d.Withheld = more(d.withheld+len(d.Findings)-n, "finding")
	d.Findings = d.Findings[:n]
	return d
}

// toneOf returns the color of the headline of r.
func toneOf(r review.Report) tone {
	severe := func(f review.Finding) bool { return f.Severity.Rank() <= review.SeverityHigh.Rank() }
	switch {
	case r.Outcome == review.OutcomeNotReviewed, slices.ContainsFunc(r.Findings, severe):
		return toneBad
	case r.Outcome == review.OutcomeClean && !r.StandIn:
		return toneGood
	}
	return toneWarn
}

func severityCounts(findings []review.Finding) string {
	var parts []string
	for _, s := range review.Severities() {
		n := 0
		for _, f := range findings {
			if f.Severity == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// userName names a p4 user. A damaged change may contain an empty name.
func userName(name string) string { return cmp.Or(plain.Line(name, maxName), "an unknown user") }

// submitted formats the time of submission.
func submitted(rfc3339 string) string {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return "at an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}

// more returns "2 more files", and an empty string for none.
func more(n int, noun string) string {
	if n < 1 {
		return ""
	}
	return strings.Replace(post.Count(n, noun), " ", " more ", 1)
}

// listed describes the first items, and counts the rest if there are more than limit.
func listed[T any](items []T, limit int, noun string, describe func(T) string) (lines []string) {
	for _, item := range items[:min(len(items), limit)] {
		lines = append(lines, describe(item))
	}
	if rest := more(len(items)-limit, noun); rest != "" {
		lines = append(lines, rest)
	}
	return lines
}

// A progressView describes what changed since an earlier version of the review.
type progressView struct {
	Since    string // "version 2", or the shelf
	Summary  string // "1 new, 2 still open"
	Resolved []string
}

// newProgressView returns nil if there is no earlier version.
func newProgressView(p *review.Progress) *progressView {
	if p == nil {
		return nil
	}
	v := &progressView{
		Since:   since(p),
		Summary: fmt.Sprintf("%d new, %d still open, %d resolved", p.New, p.StillOpen, len(p.Resolved)),
		Resolved: listed(p.Resolved, maxResolved, "finding", func(f review.Finding) string {
			return plain.Line(f.Path, maxPath) + ": " + plain.Line(f.Title, maxTitle)
		}),
	}
	if n := len(p.Unchecked); n > 0 {
		v.Summary += fmt.Sprintf("; %d in files not reviewed this time", n)
	}
	return v
}

// age returns whether the earlier version had f, empty without an earlier version.
func age(p *review.Progress, f review.Finding) string {
	switch {
	case p == nil:
		return ""
	case p.IsNew(f):
		return "new since " + since(p)
	}
	return "still open since " + since(p)
}

// since names the earlier version.
func since(p *review.Progress) string {
	if p.OnShelf {
		return "the review of the shelf"
	}
	return fmt.Sprintf("version %d", p.Since)
}
