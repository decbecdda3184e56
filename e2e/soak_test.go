package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

const (
	// soakVariable names the environment variable with the minutes of TestSoak; make soak
	// sets it.
	soakVariable = "SOAK_MINUTES"
	// seedVariable repeats the random decisions of an earlier run.
	seedVariable = "SOAK_SEED"

	soakStarts  = 500 * time.Millisecond // between reviews
	soakVictims = 3                      // workers that are killed, beside one that is not
)

// For a long time, workers are killed and stopped, the model and the mail server fail and
// return, the model is slow, and reviews are reset at random. Afterwards an operator
// replays the dead letters. Then each mail has arrived once, no review is stuck, and
// neither histories nor a worker's memory have grown.
func TestSoak(t *testing.T) {
	s := newSoak(t, minutesOf(t, "soak", soakVariable))
	s.run()
	s.repair()
	s.check()
}

type soak struct {
	*installation
	length     time.Duration
	random     *rand.Rand
	recipients []string
	survivor   int // process ID of the worker that is not killed
	victims    []*supervisor
	latency    atomic.Int64 // of the model

	modelDown, mailDown                                         bool
	started, killed, stopped, outages, resets, refused, letters int
	firstMemory                                                 int // of the survivor after a quarter of the time
}

func newSoak(t *testing.T, length time.Duration) *soak {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	printLine("%s=%d", seedVariable, seed)
	const reader = "rita"
	s := &soak{length: length, random: rand.New(rand.NewPCG(seed, 0)), recipients: recipientsOf([]string{reader})}
	s.installation = newInstallation(t, writeDepot(t, int(length/soakStarts)*2, reader))
	s.proxyMail()
	wait := func() { time.Sleep(time.Duration(s.latency.Load())) }
	s.beforeAnswer.Store(&wait)
	s.env = append(s.env, "CRITICIZER_LOG_LEVEL=warn", "CRITICIZER_LLM_MAX_TOKENS_PER_DAY=0", "CRITICIZER_WORKER_STOP_GRACE=5s")
	run(t, s.path("p4"), "info", "-s") // builds p4sim's index
	s.survivor = s.startWorker().Process.Pid
	for i := range soakVictims {
		s.victims = append(s.victims, newSupervisor(t, filepath.Join(binDir, "worker"), s.env, s.path(fmt.Sprintf("worker%d.log", i))))
	}
	return s
}

// run starts reviews and makes trouble until the time is over.
func (s *soak) run() {
	s.t.Helper()
	events := []struct {
		every time.Duration
		do    func()
		next  time.Time
	}{
		{every: soakStarts, do: s.start},
		{every: 3 * time.Second, do: s.resetAny},
		{every: 8 * time.Second, do: s.endWorker},
		{every: 20 * time.Second, do: s.toggleMail},
		{every: 25 * time.Second, do: s.toggleModel},
		{every: 10 * time.Second, do: func() {
			s.latency.Store(int64([]time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second}[s.random.IntN(4)]))
		}},
		{every: 15 * time.Second, do: s.printProgress},
	}
	began := time.Now()
	for time.Since(began) < s.length {
		next := &events[0]
		for i := range events {
			if events[i].next.Before(next.next) {
				next = &events[i]
			}
		}
		time.Sleep(time.Until(next.next))
		if !next.next.IsZero() { // nothing happens at once
			next.do()
		}
		next.next = time.Now().Add(next.every/2 + rand.N(next.every))
		if s.firstMemory == 0 && time.Since(began) > s.length/4 {
			s.firstMemory = memoryOf(s.survivor, "VmRSS")
		}
	}
}

func (s *soak) start() {
	if _, err := s.installation.start(strconv.Itoa(s.started + 1)); err != nil {
		s.t.Error(err)
		return
	}
	s.started++
}

func (s *soak) endWorker() {
	victim := s.victims[s.random.IntN(len(s.victims))]
	if s.random.IntN(2) == 0 {
		victim.kill()
		s.killed++
	} else {
		victim.stop()
		s.stopped++
	}
}

func (s *soak) toggleModel() {
	if s.modelDown {
		s.model.ClearFaults()
	} else {
		faults := []llmsim.FaultKind{llmsim.Unavailable, llmsim.RateLimit, llmsim.Drop, llmsim.LostAnswer, llmsim.CutBody}
		s.inject(llmsim.Fault{Kind: faults[s.random.IntN(len(faults))]})
		s.outages++
	}
	s.modelDown = !s.modelDown
}

func (s *soak) toggleMail() {
	if s.mailDown {
		s.mailProxy.bringUp()
	} else {
		s.mailProxy.takeDown()
		s.outages++
	}
	s.mailDown = !s.mailDown
}

// resetAny resets a review, running or not, to one of its workflow tasks.
func (s *soak) resetAny() {
	if s.started == 0 {
		return
	}
	id := s.workflowID(1 + s.random.IntN(s.started))
	described, err := s.namespace.DescribeWorkflow(s.t.Context(), id, "")
	if err != nil {
		s.t.Errorf("describe %s: %v", id, err)
		return
	}
	runID := described.WorkflowExecution.RunID
	var tasks []int64
	for _, event := range s.history(id, runID) {
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, event.GetEventId())
		}
	}
	if len(tasks) == 0 {
		return
	}
	_, err = s.namespace.ResetWorkflowExecution(s.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: s.temporal.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runID},
		Reason: "soak", WorkflowTaskFinishEventId: tasks[s.random.IntN(len(tasks))],
	})
	if err != nil {
		s.t.Logf("reset of %s: %v", id, err)
		s.refused++
		return
	}
	s.resets++
}

func (s *soak) workflowID(n int) string { return review.DefaultKey("p4", review.Changelist(n), 1) }

func (s *soak) printProgress() {
	printLine("%4d reviews started, %4d succeeded, %2d open dead letters; %d workers killed, %d stopped, %d outages, %d resets; a worker's memory %d MB",
		s.started, s.countRows("jobs", "state = 'succeeded'"), s.openLetters(), s.killed, s.stopped, s.outages, s.resets, memoryOf(s.survivor, "VmRSS"))
}

func (s *soak) openLetters() int {
	return s.countRows("dead_letters", "state in ('open', 'replaying')")
}

// repair ends all outages and replays dead letters, as an operator does, until every
// review has succeeded and no run is open.
func (s *soak) repair() {
	s.t.Helper()
	s.latency.Store(0)
	s.model.ClearFaults()
	s.mailProxy.takeDown()
	s.mailProxy.bringUp()
	s.letters = s.countRows("dead_letters", "true")
	const timeout, interval = 10 * time.Minute, 5 * time.Second
	done := poll(timeout, interval, func() bool {
		s.printProgress()
		if s.openLetters() > 0 {
			s.replay()
		}
		return s.countRows("jobs", "state = 'succeeded'") == s.started && s.openLetters() == 0 && s.openRuns() == 0
	})
	if !done {
		s.t.Errorf("%s after the last fault, %d of %d reviews have succeeded, %d dead letters and %d runs are open", timeout,
			s.countRows("jobs", "state = 'succeeded'"), s.started, s.openLetters(), s.openRuns())
	}
}

// replay replays the open dead letters. One that a reset has resolved meanwhile is an error
// of the command, and no fault.
func (s *soak) replay() {
	var letters []struct {
		ID    int64  `json:"id"`
		State string `json:"state"`
	}
	s.criticizerJSON(&letters, "deadletter", "list", "--state", "open")
	for _, letter := range letters {
		if r := s.execute(nil, "criticizer", "deadletter", "replay", strconv.FormatInt(letter.ID, 10), "--escalated", "--note", "soak: a fault that came twice", "--reason", "soak: the outage is over"); r.status != exitOK {
			s.t.Logf("replay of dead letter %d: %s", letter.ID, r.stderr)
		}
	}
}

// openRuns counts the reviews that Temporal has not ended.
func (s *soak) openRuns() int64 {
	s.t.Helper()
	counted, err := s.namespace.CountWorkflow(s.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: s.temporal.Name, Query: "WorkflowType = 'ReviewChangelist' AND ExecutionStatus = 'Running'",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return counted.GetCount()
}

func (s *soak) check() {
	s.t.Helper()
	for _, stage := range []string{"llm", "notify"} {
		s.waitForClosedBreaker(stage)
	}
	if err := judge(s.started, s.recipients, s.searchMails("")).err(); err != nil {
		s.t.Error(err)
	}
	memory := memoryOf(s.survivor, "VmRSS")
	if memory > s.firstMemory*3/2+50 {
		s.t.Errorf("a worker's memory has grown from %d to %d MB", s.firstMemory, memory)
	}
	lengths := make([]int64, 0, s.started)
	for n := range s.started {
		described, err := s.namespace.DescribeWorkflow(s.t.Context(), s.workflowID(n+1), "")
		if err != nil {
			s.t.Fatal(err)
		}
		lengths = append(lengths, described.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength())
	}
	third := len(lengths) / 3
	first, last := slices.Max(lengths[:third]), slices.Max(lengths[len(lengths)-third:])
	if last > 2*first+50 {
		s.t.Errorf("the longest history of the first third has %d events, that of the last third %d", first, last)
	}
	printLine("%d reviews, %d workers killed and %d stopped, %d resets (%d refused), %d outages, %d dead letters replayed", s.started, s.killed, s.stopped, s.resets, s.refused, s.outages, s.letters)
	printLine("longest history: first third %d events, last third %d; a worker's memory %d MB, then %d MB", first, last, s.firstMemory, memory)
	printLine("%s", map[bool]string{true: "FAILED", false: "0 lost, 0 doubled, 0 stuck"}[s.t.Failed()])
}
