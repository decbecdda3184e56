package workflows_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// reviewOfNextBuild is a build with a version that today's build does not know and cannot
// replay: it has a command of its own.
func reviewOfNextBuild(ctx workflow.Context, req review.Request) (review.Result, error) {
	if workflow.GetVersion(ctx, "of-the-next-build", workflow.DefaultVersion, 1) == 1 {
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
			return review.Result{}, err
		}
	}
	return workflows.ReviewChangelist(ctx, req)
}

const oldBuild, newBuild = "0ff1ce0ddba1", "5ca21ba0c0de"

// A release to a share of the reviews, then to all, then its rollback as docs/upgrade.md
// describes it: reviews in flight on both builds, some of which the old one cannot
// continue, all end, with one mail each. So does the replay of a dead letter of the new one.
func TestRollbackOfABuild(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	l.build(t, oldBuild, workflows.ReviewChangelist)
	l.build(t, newBuild, reviewOfNextBuild)
	l.documented(ctx, t, "Switching builds", "set-current-version", newBuild, oldBuild)
	release := make(chan struct{})
	builds := map[string][]review.Changelist{}
	next := review.Changelist(0)
	begin := func() {
		next++
		l.mu.Lock()
		l.holds[at("model", next)] = release
		l.mu.Unlock()
		l.start(t, requestOf(next, 1))
		waitUntil(ctx, t, func() bool { return l.count("model", next) == 1 })
		build := l.buildOf(ctx, t, keyOf(next, 1))
		builds[build] = append(builds[build], next)
	}
	begin()
	l.documented(ctx, t, "Switching builds", "set-ramping-version", "--percentage 10", "--percentage 50")
	for len(builds[newBuild]) < 2 || len(builds[oldBuild]) < 2 { // chosen by a hash of the workflow ID
		begin()
	}
	l.documented(ctx, t, "Switching builds", "set-current-version")
	begin()

	next++
	dead := next
	l.mu.Lock()
	l.fails[at("model", dead)] = 1
	l.mu.Unlock()
	letter := l.start(t, requestOf(dead, 1))
	if err := letter.Get(ctx, nil); classOf(err) != failure.AuthDenied || l.buildOf(ctx, t, keyOf(dead, 1)) != newBuild {
		t.Fatalf("the review to be replayed ended with %v", err)
	}

	l.documented(ctx, t, "Going back", "^workflow update-options")
	l.awaitNone(ctx, t, `count .*AutoUpgrade'"$`)
	begin() // between both steps
	l.documented(ctx, t, "Going back", "set-current-version")
	close(release)
	tasks := l.tasks(ctx, t, keyOf(dead, 1), letter.GetRunID())
	l.resetTo(ctx, t, keyOf(dead, 1), letter.GetRunID(), tasks[len(tasks)-1])
	for _, stranded := range []review.Changelist{dead, next} {
		waitUntil(ctx, t, func() bool { return l.failedTasks(ctx, t, keyOf(stranded, 1)) > 0 })
	}
	l.documented(ctx, t, "Going back", "^workflow reset")
	l.awaitNone(ctx, t, `count .*`+newBuild+`'"$`)
	for cl := range next {
		if err := l.GetWorkflow(ctx, keyOf(cl+1, 1), "").Get(ctx, nil); err != nil {
			t.Errorf("review of %d: %v", cl+1, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for where, calls := range l.calls {
		if strings.HasPrefix(where, "sent ") && calls != 1 {
			t.Errorf("%d times %s", calls, where)
		}
	}
	for cl := range next {
		if sent := l.calls[at("mail", cl+1)]; sent != 2 {
			t.Errorf("changelist %d: %d mails to 2 recipients", cl+1, sent)
		}
	}
	t.Logf("in flight at the rollback: %v", builds)
}

// build serves workflows and bookkeeping as a build of the deployment.
func (l *lab) build(t *testing.T, id string, review any) {
	t.Helper()
	w := worker.New(l.Client, activities.QueueBookkeeping, worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: true}},
		DeploymentOptions: worker.DeploymentOptions{
			UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: "criticizer", BuildID: id},
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		},
	})
	w.RegisterWorkflowWithOptions(review, workflow.RegisterOptions{Name: "ReviewChangelist"})
	w.RegisterActivity(l.books)
	noError(t, w.Start())
	t.Cleanup(w.Stop)
	eventually(t, "poller of build "+id, func() bool {
		_, err := l.WorkerDeploymentClient().GetHandle("criticizer").DescribeVersion(t.Context(), client.WorkerDeploymentDescribeVersionOptions{BuildID: id})
		return err == nil
	})
}

// command matches a command of the page, up to the end of its line.
var command = regexp.MustCompile(`(?m)^ +temporal (.*)$`)

// documented runs the command that matches a pattern in a section of docs/upgrade.md, after
// replacements, and returns its output. The server refuses it until it knows the build.
func (l *lab) documented(ctx context.Context, t *testing.T, section, pattern string, replacements ...string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/upgrade.md")
	noError(t, err)
	_, text, found := strings.Cut(string(page), "\n## "+section)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, match := range command.FindAllStringSubmatch(text, -1) {
		if !found || !regexp.MustCompile(pattern).MatchString(match[1]) {
			continue
		}
		line, out := strings.NewReplacer(replacements...).Replace(match[1]), ""
		waitUntil(ctx, t, func() bool {
			if out, err = l.temporalCommand(ctx, line); err != nil {
				t.Logf("%s: %v, %s", line, err, out)
			}
			return err == nil
		})
		return out
	}
	t.Fatalf("docs/upgrade.md, section %s, has no command %q", section, pattern)
	return ""
}

// awaitNone waits until a documented count is 0.
func (l *lab) awaitNone(ctx context.Context, t *testing.T, pattern string) {
	t.Helper()
	waitUntil(ctx, t, func() bool { return strings.TrimSpace(l.documented(ctx, t, "Going back", pattern)) == "Total: 0" })
}

// buildOf returns the build that completed the last workflow task of a review.
func (l *lab) buildOf(ctx context.Context, t *testing.T, key string) string {
	t.Helper()
	described, err := l.DescribeWorkflowExecution(ctx, key, "")
	noError(t, err)
	return described.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

// failedTasks counts the workflow tasks of a review that a worker could not replay.
func (l *lab) failedTasks(ctx context.Context, t *testing.T, key string) (n int) {
	t.Helper()
	events := l.GetWorkflowHistory(ctx, key, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		noError(t, err)
		if event.GetWorkflowTaskFailedEventAttributes().GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR {
			n++
		}
	}
	return n
}
