package export

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// object is a JSON object.
type object map[string]any

// RDJSON writes the findings of r as a DiagnosticResult of reviewdog, one diagnostic per
// place, with the fix of the first. The format cannot express skipped files.
func RDJSON(w io.Writer, r review.Report) error {
	diagnostics := []object{}
	for _, f := range r.Findings {
		for i, p := range places(f) {
			d := object{
				"message":  plain.Markdown(message(f)),
				"location": rdLocation(p),
				"severity": map[string]string{"error": "ERROR", "warning": "WARNING", "note": "INFO"}[level(f.Severity)],
				"code":     object{"value": f.Category},
			}
			if i == 0 && f.ReplacementChecked {
				d["suggestions"] = []object{{"range": rdLocation(p)["range"], "text": f.Replacement}}
			}
			diagnostics = append(diagnostics, d)
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(object{"source": object{"name": toolName}, "diagnostics": diagnostics})
}

// rdLocation has no range for a finding about a whole file. The end of a range is
// inclusive: there are no columns.
func rdLocation(p review.Place) object {
	where := object{"path": strings.TrimLeft(p.Path, "/")}
	if p.StartLine > 0 {
		where["range"] = object{"start": object{"line": p.StartLine}, "end": object{"line": p.EndLine}}
	}
	return where
}
