package export

import (
	"io"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// SARIF writes r as one run of SARIF 2.1.0. Its rules are the categories; skipped files
// are notifications. The run failed only if nothing was reviewed.
func SARIF(w io.Writer, r review.Report) error {
	return newLog(r).PrettyWrite(w)
}

func newLog(r review.Report) *sarif.Report {
	run := sarif.NewRun()
	run.Tool = sarif.NewTool().WithDriver(sarif.NewToolComponent().WithName(toolName))
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
	result := sarif.NewRuleResult(string(f.Category)).
		WithLevel(level(f.Severity)).
		WithRank(f.Confidence * 100).
		WithMessage(sarif.NewTextMessage(escapeSARIF(message(f)))).
		WithPartialFingerprints(map[string]string{"criticizer/v1": f.Fingerprint()})
	for i, p := range places(f) {
		if i == 0 {
			result.AddLocation(location(p))
		} else {
			result.AddRelatedLocation(location(p))
		}
	}
	if f.ReplacementChecked {
		code := sarif.NewReplacement().WithDeletedRegion(sarif.NewSimpleRegion(f.StartLine, f.EndLine)).
			WithInsertedContent(sarif.NewArtifactContent().WithText(f.Replacement))
		result.AddFixe(sarif.NewFix().AddArtifactChange(sarif.NewArtifactChange().
			WithArtifactLocation(sarif.NewSimpleArtifactLocation(relativeURI(f.Path))).AddReplacement(code)))
	}
	return result.WithProperties(sarif.NewPropertyBag().Add("severity", f.Severity).Add("confidence", f.Confidence))
}

// escapeSARIF escapes a plain text for a message, which may hold links in brackets (SARIF
// 3.11.6) and which some viewers take as HTML.
func escapeSARIF(s string) string { return sarifEscaper.Replace(s) }

var sarifEscaper = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "<", "‹", ">", "›", "&", "＆", "@", "(at)")

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

func invocation(r review.Report) *sarif.Invocation {
	run := sarif.NewInvocation().WithExecutionSuccessful(r.Outcome != review.OutcomeNotReviewed && !r.StandIn)
	if r.StandIn {
		run.ToolExecutionNotifications = append(run.ToolExecutionNotifications,
			sarif.NewNotification().WithLevel("warning").WithMessage(sarif.NewTextMessage("a stand-in answered: no language model has read this change")))
	}
	if r.Reason != "" {
		run.ToolExecutionNotifications = append(run.ToolExecutionNotifications,
			sarif.NewNotification().WithLevel("warning").WithMessage(sarif.NewTextMessage(escapeSARIF(plain.Text(r.Reason, maxText)))))
	}
	for _, o := range r.WithoutDeniedPaths().Omissions {
		note := sarif.NewNotification().WithLevel("note").WithMessage(sarif.NewTextMessage("not reviewed: " + string(o.Reason)))
		if o.Path != "" {
			note.AddLocation(location(review.Place{Path: o.Path}))
		}
		run.ToolExecutionNotifications = append(run.ToolExecutionNotifications, note)
	}
	return run
}
