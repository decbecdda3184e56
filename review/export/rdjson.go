package export

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// The used fields of reviewdog's DiagnosticResult.
type (
	rdResult struct {
		Source      rdSource       `json:"source"`
		Diagnostics []rdDiagnostic `json:"diagnostics"`
	}
	rdSource struct {
		Name string `json:"name"`
	}
	rdDiagnostic struct {
		Message  string     `json:"message"`
		Location rdLocation `json:"location"`
		Severity string     `json:"severity"`
		Code     rdCode     `json:"code"`
	}
	rdLocation struct {
		Path  string   `json:"path"`
		Range *rdRange `json:"range,omitempty"` // nil: the whole file
	}
	// The end is inclusive: there are no columns.
	rdRange struct {
		Start rdPosition `json:"start"`
		End   rdPosition `json:"end"`
	}
	rdPosition struct {
		Line int `json:"line"`
	}
	rdCode struct {
		Value string `json:"value"`
	}
)

// RDJSON writes the findings of r in reviewdog's diagnostic format, one diagnostic per
// place. The format cannot express skipped files.
func RDJSON(w io.Writer, r review.Report) error {
	result := rdResult{Source: rdSource{toolName}, Diagnostics: []rdDiagnostic{}}
	for _, f := range r.Findings {
		for _, p := range places(f) {
			result.Diagnostics = append(result.Diagnostics, rdDiagnostic{
				Message:  message(f),
				Location: rdPlace(p),
				Severity: rdSeverity(f.Severity),
				Code:     rdCode{string(f.Category)},
			})
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

func rdPlace(p review.Place) rdLocation {
	where := rdLocation{Path: strings.TrimLeft(p.Path, "/")}
	if p.StartLine > 0 {
		where.Range = &rdRange{rdPosition{p.StartLine}, rdPosition{p.EndLine}}
	}
	return where
}

func rdSeverity(s review.Severity) string {
	return map[string]string{"error": "ERROR", "warning": "WARNING", "note": "INFO"}[level(s)]
}
