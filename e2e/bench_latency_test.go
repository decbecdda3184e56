package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// BenchmarkFirstMail measures the time from the start of the trigger's command to the mail
// about a change of one file, one change at a time, with a model that replies at once. The
// lower bound is the same command and then an empty workflow of three activities.
func BenchmarkFirstMail(b *testing.B) {
	const changes = 200
	in := newInstallation(b, newDepot(b, manyChanges(changes)...))
	in.startWorker()
	floor, where := temporaltest.New(b, contract.Attributes()...) // without workers that review
	serve(b, floor, "floor", threeStages, &empty{})
	changelist := 0
	start := func(env ...string) {
		if changelist++; changelist > changes {
			b.Fatalf("the depot has no change %d", changelist)
		}
		cmd := exec.CommandContext(b.Context(), filepath.Join(in.bin, "starter"), "change-commit", fmt.Sprint(changelist))
		cmd.Env = append(in.env, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("starter: %v\n%s", err, out)
		}
	}
	untilMail := func() {
		start()
		for len(in.mails(review.Changelist(changelist))) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	empty := func() {
		start("CRITICIZER_TEMPORAL_NAMESPACE=" + where.Name)
		run, err := floor.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{TaskQueue: "floor"}, threeStages)
		if err == nil {
			err = run.Get(b.Context(), nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	untilMail() // the worker polls all queues
	for range benchRounds {
		b.Run("criticizer", func(b *testing.B) { latencies(b, untilMail) })
		b.Run("floor", func(b *testing.B) { latencies(b, empty) })
	}
}

// latencies reports the time of work: the median, and what one of twenty exceeds.
func latencies(b *testing.B, work func()) {
	b.Helper()
	var took []time.Duration
	for range b.N {
		began := time.Now()
		work()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	for percent, unit := range map[int]string{50: "p50-ms", 95: "p95-ms"} {
		b.ReportMetric(float64(took[(len(took)-1)*percent/100].Microseconds())/1000, unit)
	}
}
