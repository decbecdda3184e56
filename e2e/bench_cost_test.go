package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// BenchmarkCost measures one review by its number of files: fetched with p4, redacted and
// reviewed by a model that replies at once, with the default limits.
func BenchmarkCost(b *testing.B) {
	for _, files := range []int{1, 10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) { benchmarkCost(b, files) })
	}
}

func benchmarkCost(b *testing.B, files int) {
	b.Helper()
	p := newBenchPipeline(b, files)
	peak := watchMemory(b)
	for b.Loop() {
		p.review(b)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/review")
	b.ReportMetric(peak(), "peak-MB")
	b.ReportMetric(p.p4Processes(b)/float64(b.N), "p4-processes/review")
	b.ReportMetric(float64(p.model.Stats().Calls-p.calls)/float64(b.N), "model-calls/review")
}

// A pipeline holds the parts that process a review.
type pipeline struct {
	changes  *p4.ChangeFetcher
	pipeline *redaction.Pipeline
	reviewer *llm.Reviewer
	model    *llmsim.Server
	calls    int // of the model before the measurement
	p4log    string
}

// newBenchPipeline serves one changelist with a number of files.
func newBenchPipeline(b *testing.B, files int) *pipeline {
	b.Helper()
	dir := b.TempDir()
	p := &pipeline{model: llmsim.New(llmsim.Config{}), p4log: filepath.Join(dir, "p4log")}
	endpoint := httptest.NewServer(p.model)
	b.Cleanup(endpoint.Close)
	env := map[string]string{
		"CRITICIZER_CONFIG":           filepath.Join(dir, "criticizer.yaml"),
		"CRITICIZER_P4_COMMAND":       serveDepot(b, dir, p.p4log, files),
		"CRITICIZER_P4_PORT":          "ssl:p4sim:1666",
		"CRITICIZER_P4_USER":          "criticizer",
		"CRITICIZER_P4_ALLOWED_PATHS": "//depot/...",
		"CRITICIZER_P4_STATE_DIR":     filepath.Join(dir, "home"),
		"CRITICIZER_LLM_BASE_URL":     endpoint.URL + "/v1",
		"CRITICIZER_LLM_MODEL":        "llmsim-1",
	}
	writeFile(b, env["CRITICIZER_CONFIG"], 0o600, "")
	cfg, err := settings.Load("", func(name string) string { return env[name] })
	if err != nil {
		b.Fatal(err)
	}
	if p.changes, err = cfg.NewChanges(discard, nil); err != nil {
		b.Fatal(err)
	}
	if p.pipeline, err = cfg.NewPipeline(secret.New("a key of this benchmark")); err != nil {
		b.Fatal(err)
	}
	if p.reviewer, err = cfg.NewReviewer(discard, p.pipeline); err != nil {
		b.Fatal(err)
	}
	p.review(b) // p4sim indexes its depot once
	writeFile(b, p.p4log, 0o600, "")
	p.calls = p.model.Stats().Calls
	return p
}

func (p *pipeline) review(b *testing.B) {
	b.Helper()
	change, err := p.changes.Read(b.Context(), 1, review.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	redacted, err := p.pipeline.Change(change)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.reviewer.Review(b.Context(), redacted, review.Options{}); err != nil {
		b.Fatal(err)
	}
}

// p4Processes counts the runs of p4.
func (p *pipeline) p4Processes(b *testing.B) float64 {
	b.Helper()
	log, err := os.ReadFile(p.p4log)
	if err != nil {
		b.Fatal(err)
	}
	return float64(bytes.Count(log, []byte("\n")))
}

// serveDepot makes a depot with one changelist, and a p4 command that serves it.
func serveDepot(b *testing.B, dir, log string, files int) (command string) {
	b.Helper()
	depot := filepath.Join(dir, "depot")
	for i := range files {
		var text strings.Builder
		for line := range 20 {
			fmt.Fprintf(&text, "int value_%d_%d = %d;\n", i, line, line)
		}
		writeFile(b, filepath.Join(depot, fmt.Sprintf("module%d/file%d.c", i%100, i)), 0o600, text.String())
	}
	run(b, "git", "init", "-q", "-b", "main", depot)
	run(b, "git", "-C", depot, "add", "-A")
	run(b, "git", "-C", depot, "-c", "user.name=Alice", "-c", "user.email=alice@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "Begin")
	command = filepath.Join(dir, "p4")
	writeP4(b, command, binDir, "P4SIM_DEPOT="+depot, "P4SIM_STATE="+filepath.Join(dir, "state"), "P4SIM_LOG="+log)
	return command
}

// watchMemory samples the heap until peak is called, which returns the maximum in MB.
func watchMemory(b *testing.B) (peak func() float64) {
	b.Helper()
	runtime.GC()
	ctx, stop := context.WithCancel(b.Context())
	highest := make(chan uint64, 1)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for ctx.Err() == nil {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			time.Sleep(time.Millisecond)
		}
		highest <- most
	}()
	return func() float64 {
		stop()
		return float64(<-highest) / 1e6
	}
}
