package p4

import (
	"context"
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/p4/internal/command"
)

// Limits on the jobs of one changelist. A longer text is left out, and not cut:
// redaction needs whole texts, and cuts them.
const (
	maxJobs     = 20
	maxJobBytes = 64 << 10
)

// jobName matches a name that has no other meaning in a query.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// withTexts appends its text to each job, with one p4 jobs: p4 describe reports
// only the names. With an error it returns the names.
func (x *fetch) withTexts(ctx context.Context, jobs []string) ([]string, error) {
	var query []string
	for _, name := range jobs[:min(len(jobs), maxJobs)] {
		if jobName.MatchString(name) {
			query = append(query, "Job="+name)
		}
	}
	if query == nil {
		return jobs, nil
	}
	records, err := x.Stats(ctx, command.Cmd{Name: "jobs", Flags: []string{"-l", "-e"}, Operands: []string{strings.Join(query, "|")}})
	if err != nil {
		return jobs, err
	}
	texts := make(map[string]string)
	for _, rec := range records {
		texts[rec.Fields["Job"]] = rec.Fields["Description"]
	}
	var out []string
	for _, name := range jobs {
		text := x.text(texts[name])
		if len(text) > maxJobBytes {
			text = "(its text is too long)"
		}
		out = append(out, strings.TrimSpace(x.name(name)+"\n"+text))
	}
	return out, nil
}
