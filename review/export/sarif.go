// Package export writes a report for other tools, as SARIF 2.1.0. Reports are redacted, so
// the output is too.
package export

import (
	"io"
	"net/url"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// maxText bounds one text of a finding, in characters.
const maxText = 10_000

// SARIF writes r as one run of SARIF 2.1.0. Its rules are the categories; skipped files
// are notifications. The run failed only if nothing was reviewed.
func SARIF(w io.Writer, r review.Report) error {
	return newLog(r).PrettyWrite(w)
}

func newLog(r review.Report) *sarif.Report {
	run := sarif.NewRun()
	run.Tool = sarif.NewTool().WithDriver(sarif.NewToolComponent().WithName("criticizer"))
	run.WithColumnKind("utf16CodeUnits")
	for _, f := range r.Findings {
		run.AddRule(string(f.Category))
		found := result(f)
		if link := r.Links.ToFile(r.Changelist, f.Place()); link != "" {
			found.WithHostedViewerURI(link)
		}
		run.AddResult(found)
	}
	run.AddInvocation(invocation(r))
	run.Properties = sarif.NewPropertyBag().
		Add("changelist", r.Changelist).Add("reviewVersion", r.Version).Add("outcome", r.Outcome).Add("model", r.Model)
	return sarif.NewReport().AddRun(run)
}

func result(f review.Finding) *sarif.Result {
	var texts []string
	for _, s := range []string{f.Title, f.Explanation, f.Suggestion} {
		if s != "" {
			texts = append(texts, plain.Text(s, maxText))
		}
	}
	result := sarif.NewRuleResult(string(f.Category)).
		WithLevel(level(f.Severity)).
		WithRank(f.Confidence * 100).
		WithMessage(sarif.NewTextMessage(escapeSARIF(strings.Join(texts, "\n\n")))).
		WithPartialFingerprints(map[string]string{"criticizer/v1": f.Fingerprint()})
	result.AddLocation(location(f.Place()))
	for _, p := range f.Places {
		result.AddRelatedLocation(location(p))
	}
	if f.ReplacementChecked {
		code := sarif.NewReplacement().WithDeletedRegion(sarif.NewSimpleRegion(f.StartLine, f.EndLine)).
			WithInsertedContent(sarif.NewArtifactContent().WithText(f.Replacement))
		result.AddFixe(sarif.NewFix().AddArtifactChange(sarif.NewArtifactChange().
			WithArtifactLocation(sarif.NewSimpleArtifactLocation(relativeURI(f.Path))).AddReplacement(code)))
	}
	return result.WithProperties(sarif.NewPropertyBag().Add("severity", f.Severity).Add("confidence", f.Confidence))
}

// level returns the SARIF level. The highest is error.
func level(s review.Severity) string {
	switch s {
	case review.SeverityCritical, review.SeverityHigh:
		return "error"
	case review.SeverityMedium:
		return "warning"
	default:
		return "note"
	}
}

func location(p review.Place) *sarif.Location {
	where := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(relativeURI(p.Path)))
	if p.StartLine > 0 {
		where.WithRegion(sarif.NewSimpleRegion(p.StartLine, p.EndLine))
	}
	return sarif.NewLocationWithPhysicalLocation(where)
}

// relativeURI returns a depot path as a relative URI reference: //depot/a b.c is
// depot/a%20b.c. It never has a scheme or a host.
func relativeURI(depotPath string) string {
	return (&url.URL{Path: strings.TrimLeft(depotPath, "/")}).String()
}

func invocation(r review.Report) *sarif.Invocation {
	run := sarif.NewInvocation().WithExecutionSuccessful(r.Outcome != review.OutcomeNotReviewed && !r.StandIn)
	notify := func(level, text string) *sarif.Notification {
		n := sarif.NewNotification().WithLevel(level).WithMessage(sarif.NewTextMessage(text))
		run.ToolExecutionNotifications = append(run.ToolExecutionNotifications, n)
		return n
	}
	if r.StandIn {
		notify("warning", "a stand-in answered: no language model has read this change")
	}
	if r.Reason != "" {
		notify("warning", escapeSARIF(plain.Text(r.Reason, maxText)))
	}
	notify("note", strings.TrimSpace(r.Tally().Text()+" "+r.Tally().Aside()))
	for _, f := range r.WithoutDeniedPaths().Coverage {
		for _, l := range f.Lines {
			if l.State != review.LinesHidden {
				continue
			}
			if n := notify("warning", "not reviewed: "+string(l.Why)); f.Path != "" {
				n.AddLocation(location(review.Place{Path: f.Path, StartLine: l.First, EndLine: l.Last}))
			}
		}
	}
	return run
}

// escapeSARIF escapes a plain text for a message, which may hold links in brackets (SARIF
// 3.11.6) and which some viewers take as HTML.
func escapeSARIF(s string) string { return sarifEscaper.Replace(s) }

var sarifEscaper = strings.NewReplacer("://<", `\[:\]//‹`, "://>", `\[:\]//›`, `\`, `\\`, "[", `\[`, "]", `\]`, "<", "‹", ">", "›", "&", "＆", "@", "(at)")
