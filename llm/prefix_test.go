package llm

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// BenchmarkCacheablePrefix reports how much of the prompts of a review of 10 parts, with
// verification and one repair, is the beginning of an earlier prompt: a provider's cache
// can have it.
func BenchmarkCacheablePrefix(b *testing.B) {
	pipeline, err := pipeline()
	if err != nil {
		b.Fatal(err)
	}
	c, err := pipeline.Change(review.Change{Number: 4711, User: "ann", Description: "Compute values.", Files: manyFiles(10)})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		sim := llmsim.New(llmsim.Config{})
		if err := sim.Inject(llmsim.Fault{Kind: llmsim.Scripted, Content: `{"codes":[],"findings":[]}`, Times: 1}); err != nil {
			b.Fatal(err)
		}
		sent := &bodies{next: sim}
		r := benchmarked(b, sent)
		d, err := r.Review(b.Context(), c, review.Options{})
		if err != nil || d.FilesRead != 10 {
			b.Fatalf("draft %+v, error %v", d, err)
		}
		all, shared := 0, 0
		var earlier []string
		for _, body := range sent.all {
			var req request
			if err := json.Unmarshal([]byte(body), &req); err != nil {
				b.Fatal(err)
			}
			var prompt strings.Builder
			for _, m := range req.Messages {
				prompt.WriteString(m.Role + "\n" + m.Content + "\n")
			}
			longest := ""
			for _, e := range earlier {
				if p := commonPrefix(e, prompt.String()); len(p) > len(longest) {
					longest = p
				}
			}
			all, shared = all+countTokens(prompt.String()), shared+countTokens(longest)
			earlier = append(earlier, prompt.String())
		}
		b.ReportMetric(float64(len(sent.all)), "calls")
		b.ReportMetric(float64(all), "tokens")
		b.ReportMetric(100*float64(shared)/float64(all), "%cacheable")
	}
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func benchmarked(b *testing.B, endpoint http.Handler) *Reviewer {
	b.Helper()
	server := httptest.NewServer(endpoint)
	b.Cleanup(server.Close)
	guard, err := pipeline()
	if err != nil {
		b.Fatal(err)
	}
	r, err := New(slog.New(slog.DiscardHandler), guard, Config{
		BaseURL: server.URL + "/v1", Model: "test-model", MaxPromptTokens: minPromptTokens, Concurrency: 1, Verify: VerifyOn, Nitpicks: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}
