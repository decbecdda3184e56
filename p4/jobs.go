package p4

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
)

// What is read of the jobs of one changelist.
const (
	maxJobs     = 20
	maxJobBytes = 1_000
)

// jobName is a name that means nothing else in a query.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// withTexts adds to each job what it is about, which p4 describe does not tell:
// the change is reviewed against it. Of jobs that cannot be read, as many
// accounts may not, the names are what there is.
func (s *server) withTexts(ctx context.Context, jobs []string) ([]string, error) {
	var query []string
	for _, name := range jobs[:min(len(jobs), maxJobs)] {
		if jobName.MatchString(name) {
			query = append(query, "Job="+name)
		}
	}
	if query == nil {
		return jobs, nil
	}
	records, err := s.stats(ctx, command{name: "jobs", flags: []string{"-l", "-e"}, operands: []string{strings.Join(query, "|")}})
	if err != nil && (ctx.Err() != nil || failure.ClassOf(err).Retryable()) {
		return nil, err
	}
	texts := make(map[string]string)
	for _, rec := range records {
		texts[rec.fields["Job"]] = rec.fields["Description"]
	}
	var out []string
	for _, name := range jobs {
		text, _ := legacyToUTF8(texts[name])
		out = append(out, strings.TrimSpace(name+"\n"+cutText(text, maxJobBytes)))
	}
	return out, nil
}

// cutText returns the first n bytes of s at most, cut at a rune border.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
