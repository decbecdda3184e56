package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/workflows/contract"
)

// BenchmarkStarter measures the trigger's command, and starting a workflow with the
// temporal command.
func BenchmarkStarter(b *testing.B) {
	temporal := temporalCommand(b)
	_, where := temporaltest.New(b, contract.Attributes()...)
	dir := b.TempDir()
	starter := filepath.Join(binDir, "starter")
	config := filepath.Join(dir, "criticizer.yaml")
	text := fmt.Sprintf("temporal: {address: %q, namespace: %q}\nstarter: {spool_dir: %q}\n", where.Address, where.Name, filepath.Join(dir, "spool"))
	writeFile(b, config, 0o600, text)
	started := 0
	for range benchRounds {
		b.Run("starter", func(b *testing.B) {
			for b.Loop() {
				started++
				run(b, starter, "--config", config, "--trigger", "change-commit", fmt.Sprint(started))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "starts/s")
		})
		b.Run("temporal", func(b *testing.B) {
			for b.Loop() {
				run(b, temporal, "workflow", "start", "--address", where.Address, "--namespace", where.Name,
					"--task-queue", "criticizer", "--type", "ReviewChangelist", "--input", `{"changelist":1}`)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "starts/s")
		})
	}
}

func run(tb testing.TB, name string, args ...string) {
	tb.Helper()
	if out, err := exec.CommandContext(tb.Context(), name, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, out)
	}
}
