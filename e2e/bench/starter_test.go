package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
)

// commandVariable names the temporal command; `make bench` sets it.
const temporalVariable = "CRITICIZER_TEST_TEMPORAL_COMMAND"

// BenchmarkStarter is a trigger's command from its start to its end, beside the
// least that starts a workflow with the stock tool.
func BenchmarkStarter(b *testing.B) {
	temporal := os.Getenv(temporalVariable)
	if temporal == "" {
		b.Skipf("SKIPPED, no temporal command: %s is not set; make bench sets it", temporalVariable)
	}
	_, where := temporalnstest.New(b)
	dir := b.TempDir()
	starter := filepath.Join(dir, "starter")
	run(b, "env", "CGO_ENABLED=0", "go", "build", "-o", starter, "../../starter") // as make build
	config := filepath.Join(dir, "criticizer.yaml")
	text := fmt.Sprintf("temporal: {address: %q, namespace: %q}\nstarter: {spool_dir: %q}\n", where.Address, where.Name, filepath.Join(dir, "spool"))
	write(b, config, 0o600, text)
	started := 0
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

func run(b *testing.B, name string, args ...string) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}
