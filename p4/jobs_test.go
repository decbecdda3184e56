package p4

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// describesJobs makes the server describe a changelist of the given jobs.
func (f *fake) describesJobs(jobs ...string) {
	f.submitted(12, rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"})
	fields := []string{"change", "12", "user", "ann", "time", "932758432", "desc", "Mend it.\n", "status", "submitted",
		"depotFile0", "//depot/f", "action0", "add", "type0", "text", "rev0", "1", "fileSize0", "4"}
	for i, name := range jobs {
		n := string(rune('0' + i))
		fields = append(fields, "job"+n, name, "jobstat"+n, "closed")
	}
	f.reply("describe 12", stat(fields...))
}

func TestJobsHaveTexts(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.describesJobs("job000001", "BUG-7")
	f.reply("jobs -l -e Job=job000001|Job=BUG-7",
		stat("Job", "job000001", "severity", "3", "generic", "6"), // fields of the jobspec
		stat("Job", "BUG-7", "Status", "open", "Description", "Crash\nwithout a map.\n"), stat("Job", "other", "Description", "no"))
	change, err := f.fetch(12)
	testkit.NoError(t, err)
	if want := []string{"job000001", "BUG-7\nCrash\nwithout a map."}; !slices.Equal(change.Jobs, want) {
		t.Errorf("jobs are %q, want %q", change.Jobs, want)
	}
}

func TestUnreadableJobsKeepTheirNames(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.describesJobs("job000001", "a job with blanks", "x|Status=open", "-e")
	f.reply("jobs -l -e Job=job000001", message(3, 6, "You don't have permission for this operation.\n"))
	change, err := f.fetch(12)
	if err != nil || len(change.Jobs) != 4 || change.Jobs[0] != "job000001" {
		t.Errorf("jobs are %q, %v", change.Jobs, err)
	}
	for _, call := range f.ran("jobs") {
		if strings.Contains(strings.Join(call.Args, " "), "Status") {
			t.Errorf("the name of a job became part of a query: %q", call.Args)
		}
	}
}

// Redaction cuts texts: p4 leaves out those that it cannot hand over whole.
func TestLongJobIsLeftOut(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.describesJobs("job000001")
	f.reply("jobs -l -e Job=job000001", stat("Job", "job000001", "Description", strings.Repeat("x", maxJobBytes+1)))
	change, err := f.fetch(12)
	if err != nil || strings.Contains(change.Jobs[0], "xx") || !strings.HasPrefix(change.Jobs[0], "job000001\n") {
		t.Errorf("the job has %d bytes, %v", len(change.Jobs[0]), err)
	}
}
