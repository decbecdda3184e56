package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// BenchmarkCacheablePrefix reports how much of the prompts of a review of 10 parts, with
// verification and one repair, is the beginning of an earlier prompt: a provider's cache
// can have it.
func BenchmarkCacheablePrefix(b *testing.B) {
	c := redacted(b, manyFiles(10)...)
	for b.Loop() {
		r := withFaults(b, func(c *Config) { c.MaxPromptTokens, c.Concurrency, c.Verify = minPromptTokens, 1, VerifyOn }, answers(`{"codes":[],"findings":[]}`)...)
		sent := r.sent
		d, err := r.Review(b.Context(), c, review.Options{})
		if err != nil || read(d) != 10 {
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
