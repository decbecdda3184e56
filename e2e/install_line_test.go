package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// triggerCommand is the command of a line of the trigger table.
var triggerCommand = regexp.MustCompile(`(?m)^\tcriticizer change-commit //depot/\.\.\. "(.+)"$`)

// bashTrigger is the script of docs/trigger.md.
func bashTrigger(t *testing.T) string {
	t.Helper()
	_, script, found := strings.Cut(readFile(t, "../docs/trigger.md"), "```bash\n")
	if !found {
		t.Fatal("docs/trigger.md has no script for bash")
	}
	script, _, _ = strings.Cut(script, "```")
	return script
}

// The printed line starts a review in the environment of a Perforce server, and so does
// the script of docs/trigger.md, although the other program that it runs fails.
func TestPrintedTriggerStartsReviews(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, manyChanges(2)...))
	in.startWorker()
	r := in.execute(nil, "starter", "--config", in.path("criticizer.yaml"), "install", "--print", "--timeout=1m")
	found := triggerCommand.FindStringSubmatch(r.stdout)
	if r.status != exitOK || found == nil {
		t.Fatalf("install: %+v", r)
	}
	program, _, _ := strings.Cut(found[1], " ")
	other := in.path("other")
	writeFile(t, other, 0o700, "#!/bin/sh\necho other \"$1\"\nexit 3\n")
	// A trigger has 2 seconds, which a busy machine may need for less.
	patient := strings.NewReplacer("--trigger change-commit", "change-commit --timeout=1m")
	installed := strings.NewReplacer("/opt/criticizer/criticizer-starter", program, "/etc/criticizer/starter.yaml", in.path("criticizer.yaml"), "/opt/other/trigger", quote(other))
	writeFile(t, in.path("trigger"), 0o700, patient.Replace(installed.Replace(bashTrigger(t))))
	run := func(command string) (output string, status int) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, status := run(patient.Replace(strings.ReplaceAll(found[1], "%changelist%", "1"))); status != exitOK || !strings.Contains(out, "changelist 1 ") {
		t.Errorf("printed line: status %d\n%s", status, out)
	}
	if out, status := run(quote(in.path("trigger")) + " 2"); status != 3 || !strings.Contains(out, "changelist 2 ") || !strings.HasSuffix(out, "other 2\n") {
		t.Errorf("script: status %d, not that of the other program\n%s", status, out)
	}
	in.waitForJobs(2)
}
