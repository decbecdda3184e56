package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// The delays between the five attempts of a stage, as the server has them: each is within
// the limit of full jitter, the limit doubles, and no attempt starts before its delay is
// over, nor before the time that a 429 asks for (processing 8.2, 8.2.2).
func TestBackoffIsObserved(t *testing.T) {
	t.Parallel()
	const down, limited = 16, 17 // the changelists up to the first, and the last
	const retryAfter = 2 * time.Second
	changes := make([]map[string]string, limited)
	for i := range changes {
		changes[i] = map[string]string{fmt.Sprintf("cl%d.go", i+1): clean}
	}
	in := newInstallation(t, newDepot(t, changes...))
	in.disableBreaker()
	in.inject(llmsim.Fault{Kind: llmsim.RateLimit, RetryAfter: "2", Times: 3, Match: fmt.Sprintf("cl%d.go", limited)})
	for cl := range down {
		in.inject(llmsim.Fault{Kind: llmsim.Unavailable, Match: fmt.Sprintf("cl%d.go", cl+1)})
	}
	seen := in.observeAttempts()
	in.startWorker()
	for cl := range changes {
		in.mustStart(fmt.Sprint(cl + 1))
	}
	in.waitForJobs(len(changes))

	longest, complete := map[int32]time.Duration{}, 0
	for cl := 1; cl <= down; cl++ {
		id := fmt.Sprintf("review-p4-%d-v1", cl)
		attempts := seen(id)
		delays := delaysOf(t, id, attempts)
		for attempt, delay := range delays {
			if limit := failure.InitialDelay << (attempt - 2); delay > limit {
				t.Errorf("%s: attempt %d waited %s, want at most %s", id, attempt, delay, limit)
			}
			longest[attempt] = max(longest[attempt], delay)
		}
		if len(attempts) > failure.AttemptBudget {
			t.Errorf("%s asked the model %d times, want at most %d", id, len(attempts), failure.AttemptBudget)
		}
		if len(delays) == failure.AttemptBudget-1 {
			complete++
			in.checkLastAttempt(id)
		}
	}
	// On a busy machine an attempt is lost now and then.
	if complete < down/2 {
		t.Fatalf("%d of %d reviews asked the model in all attempts", complete, down)
	}
	// A delay is below a quarter of its limit with a probability of 1/4, and so are 16 with
	// one of 1 in 4 billion, and 8 with one of 1 in 65,536.
	for _, attempt := range []int32{failure.AttemptBudget - 1, failure.AttemptBudget} {
		if limit := failure.InitialDelay << (attempt - 2); longest[attempt] <= limit/4 {
			t.Errorf("the longest delay before attempt %d is %s, of a limit of %s", attempt, longest[attempt], limit)
		}
	}
	id := fmt.Sprintf("review-p4-%d-v1", limited)
	delays := delaysOf(t, id, seen(id))
	for attempt, delay := range delays {
		if delay < retryAfter {
			t.Errorf("%s: attempt %d has a delay of %s, and the 429 asks for %s", id, attempt, delay, retryAfter)
		}
	}
	if len(delays) == 0 {
		t.Errorf("%s: no delay is known", id)
	}
}

// delaysOf returns the delays before attempts, by attempt of the stage. No attempt may start
// before the end of its delay. An attempt after one that was lost is the first of another
// activity, with the rest of the attempts, and has no delay.
func delaysOf(t *testing.T, id string, attempts []*workflowpb.PendingActivityInfo) map[int32]time.Duration {
	t.Helper()
	delays := map[int32]time.Duration{}
	for i, a := range attempts {
		failed := a.GetLastFailure().GetApplicationFailureInfo()
		if i == 0 || failed == nil || a.GetAttempt() != attempts[i-1].GetAttempt()+1 {
			continue
		}
		delay := failed.GetNextRetryDelay().AsDuration()
		if waited := a.GetLastStartedTime().AsTime().Sub(attempts[i-1].GetLastStartedTime().AsTime()); delay <= 0 || waited < delay {
			t.Errorf("%s: attempt %d started %s after the one before it, of a delay of %s", id, a.GetAttempt(), waited, delay)
		}
		delays[failure.AttemptBudget-a.GetMaximumAttempts()+a.GetAttempt()] = delay
	}
	return delays
}

// checkLastAttempt checks the history: the fifth attempt was the last.
func (in *installation) checkLastAttempt(id string) {
	in.t.Helper()
	var started *historypb.ActivityTaskStartedEventAttributes
	for _, event := range in.history(id, "") {
		if a := event.GetActivityTaskStartedEventAttributes(); a != nil {
			started = a
		}
		if f := event.GetActivityTaskFailedEventAttributes(); f != nil {
			if f.GetRetryState() != enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED || started.GetAttempt() != failure.AttemptBudget {
				in.t.Errorf("%s: attempt %d failed for good: %s", id, started.GetAttempt(), f.GetRetryState())
			}
			return
		}
	}
	in.t.Errorf("%s: no activity has failed for good", id)
}

// observeAttempts puts a server before the model. It asks Temporal about each attempt that
// calls the model, and returns what Temporal knows of the attempts of a review.
func (in *installation) observeAttempts() (seen func(id string) []*workflowpb.PendingActivityInfo) {
	in.t.Helper()
	var mu sync.Mutex
	all := map[string][]*workflowpb.PendingActivityInfo{}
	file := regexp.MustCompile(`//depot/cl(\d+)\.go`)
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the worker has given up
		}
		if found := file.FindSubmatch(body); found != nil {
			id := fmt.Sprintf("review-p4-%s-v1", found[1])
			if described, err := in.namespace.DescribeWorkflow(r.Context(), id, ""); err == nil {
				mu.Lock()
				all[id] = append(all[id], described.RawResponse.GetPendingActivities()...)
				mu.Unlock()
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		in.model.ServeHTTP(w, r)
	}))
	in.t.Cleanup(before.Close)
	in.env = append(in.env, "CRITICIZER_LLM_BASE_URL="+before.URL+"/v1")
	return func(id string) []*workflowpb.PendingActivityInfo {
		mu.Lock()
		defer mu.Unlock()
		return all[id]
	}
}
