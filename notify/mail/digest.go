package mail

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/review"
)

// How much of what others wrote is shown, in runes or items. Together they
// keep a digest with one finding under maxHTML, however hostile the texts.
const (
	maxSubject     = 100
	maxName        = 80
	maxPath        = 300
	maxTitle       = 200
	maxDescription = 1000
	maxProse       = 2000
	maxQuoteLines  = 20
	maxQuoteLine   = 160
	maxOmissions   = 40
	maxUnresolved  = 20
	digestShown    = 12 // of the prompt digest; enough to tell two apart
)

// A digest is what the templates show. Every text from the change or the model
// passed block or line.
type digest struct {
	Subject     string
	Changelist  string
	Version     string
	Author      string
	Submitted   string
	Done        string // submitted or shelved
	Description string

	Verdict  string // the outcome in a few words
	Tone     tone
	Coverage string // how much was reviewed
	Reason   string // why not all of it
	Counts   string // "1 critical, 2 low"
	Shown    string // how many of them are in the mail, if not all
	Rerun    *rerunView
	Note     string // what else is to be known about this review

	Findings []findingView
	// Withheld counts the findings that did not fit, empty if all did.
	Withheld string

	Omissions []omissionView
	// OmissionsWithheld counts the files not reviewed and not listed either.
	OmissionsWithheld string

	Redactions string
	Unresolved string
	LeftOut    string
	Checked    string
	Switched   []string
	Asked      bool // whether a model was asked at all
	Model      string
	Usage      string
	Prompt     string
}

// A tone colours the verdict. Only a clean review gets the good one.
type tone string

const (
	toneGood tone = "good"
	toneWarn tone = "warn"
	toneBad  tone = "bad"
)

// newDigest describes r with at most limit of its findings, worst first.
func newDigest(r review.Report, limit int) digest {
	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b review.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.StartLine, b.StartLine))
	})
	d := digest{
		Subject:     subject(r),
		Changelist:  r.Changelist.String(),
		Version:     strconv.Itoa(int(r.Version)),
		Author:      user(r.Author),
		Submitted:   submitted(r.SubmittedAt),
		Done:        done(r),
		Description: strings.TrimSpace(block(r.Description, maxDescription)),
		Coverage:    coverage(r),
		Reason:      line(r.Reason, maxProse),
		Counts:      severityCounts(findings),
		Rerun:       newRerunView(r.Progress),
		Note:        note(r),
		Shown:       shown(limit, len(findings)),
		Withheld:    more(len(findings)-limit, "finding"),
		Redactions:  redactions(r),
		Unresolved:  unresolved(r.Unresolved),
		LeftOut:     leftOut(r),
		Checked:     checked(r.Check),
		Switched:    switched(r.Switches),
		Asked:       r.Usage.Asked(),
		Model:       line(r.Model, maxName),
		Usage:       usage(r),
		Prompt:      line(r.PromptDigest[:min(len(r.PromptDigest), digestShown)], maxName),
	}
	d.Verdict, d.Tone = verdicts[r.Outcome](r)
	for _, f := range findings[:limit] {
		v := newFindingView(f)
		v.Age = age(r.Progress, f)
		v.Answer = newAnswerView(f.FeedbackToken, r.Feedback)
		d.Findings = append(d.Findings, v)
	}
	d.Omissions, d.OmissionsWithheld = omissions(r.Omissions)
	return d
}

// verdicts says how each outcome that is mailed reads. None but a clean review
// that read something may look clean.
var verdicts = map[review.Outcome]func(review.Report) (string, tone){
	review.OutcomeClean: func(r review.Report) (string, tone) {
		if r.FilesRead == 0 {
			return "Nothing was reviewed", toneWarn
		}
		return "No findings", toneGood
	},
	review.OutcomeFindings: func(r review.Report) (string, tone) {
		return count(len(r.Findings), "finding"), findingsTone(r.Findings)
	},
	review.OutcomePartial: func(r review.Report) (string, tone) {
		if len(r.Findings) == 0 {
			return "Only partly reviewed, nothing found in that part", toneWarn
		}
		return "Only partly reviewed, " + count(len(r.Findings), "finding") + " in that part", findingsTone(r.Findings)
	},
	review.OutcomeNotReviewed: func(review.Report) (string, tone) {
		return "Not reviewed", toneBad
	},
}

func findingsTone(findings []review.Finding) tone {
	for _, f := range findings {
		if f.Severity == review.SeverityCritical || f.Severity == review.SeverityHigh {
			return toneBad
		}
	}
	return toneWarn
}

// rank orders severities, worst first; one nobody knows comes last.
func rank(s review.Severity) int {
	if i := slices.Index(review.Severities(), s); i >= 0 {
		return i
	}
	return len(review.Severities())
}

// coverage says how much was reviewed. Outside of a partial review the files
// not read are those with nothing to read, such as deleted ones.
func coverage(r review.Report) string {
	files := count(r.FilesTotal, "file")
	switch {
	case r.Outcome == review.OutcomePartial:
		return fmt.Sprintf("%d of %s reviewed in full. What was not may hold anything.", r.FilesRead, files)
	case r.Outcome == review.OutcomeNotReviewed, r.FilesRead == 0:
		return fmt.Sprintf("0 of %s reviewed. This says nothing about the change.", files)
	case r.FilesRead < r.FilesTotal:
		return fmt.Sprintf("%d of %s reviewed; the others have no content to review.", r.FilesRead, files)
	}
	return files + " reviewed, which is the whole change."
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

func redactions(r review.Report) string {
	if r.RedactionTotal() == 0 {
		return ""
	}
	var classes []string
	for _, c := range r.Redactions {
		classes = append(classes, fmt.Sprintf("%d %s", c.Count, c.Class))
	}
	return fmt.Sprintf("%s masked before the model saw the change: %s.",
		count(r.RedactionTotal(), "secret"), line(strings.Join(classes, ", "), maxProse))
}

// user names a p4 user, whom a damaged change may not name.
func user(name string) string { return cmp.Or(line(name, maxName), "an unknown user") }

func unresolved(users []string) string {
	var names []string
	for _, u := range users[:min(len(users), maxUnresolved)] {
		names = append(names, user(u))
	}
	if rest := more(len(users)-len(names), "user"); rest != "" {
		names = append(names, rest)
	}
	return strings.Join(names, ", ")
}

// shown says how many findings fitted, where a reader begins to read.
func shown(limit, all int) string {
	if limit >= all || limit == 0 {
		return ""
	}
	return fmt.Sprintf("The worst %d of them are in this mail.", limit)
}

// done is what the author has done with the change.
func done(r review.Report) string {
	if r.Shelved {
		return "shelved"
	}
	return "submitted"
}

// note says where the findings come from, if not from this very change.
func note(r review.Report) string {
	if !r.AsShelved {
		return ""
	}
	return "Submitted as it was reviewed on the shelf: these are the findings of that review."
}

// submitted is the time of submission as people read it.
func submitted(rfc3339 string) string {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return "at an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// firstLine is the first line of a description that says something.
func firstLine(description string) string {
	for l := range strings.Lines(strings.ReplaceAll(description, "\r", "\n")) {
		if l := line(l, maxSubject); l != "" {
			return l
		}
	}
	return "(no description)"
}

// count is "1 file" or "3 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// more is "2 more files", and nothing for none.
func more(n int, noun string) string {
	if n < 1 {
		return ""
	}
	return strings.Replace(count(n, noun), " ", " more ", 1)
}
