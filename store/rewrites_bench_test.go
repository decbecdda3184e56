package store_test

import (
	"testing"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// BenchmarkEnqueue enqueues 1,000 jobs in one call, with the constraints that keep rows
// readable and without them.
func BenchmarkEnqueue(b *testing.B) {
	for name, prepare := range map[string]string{
		"checks": `select 1`,
		"no checks": `alter table criticizer.rewrite_jobs drop constraint rewrite_jobs_languages_are_tags, drop constraint rewrite_jobs_routing_holds_no_text,
			drop constraint rewrite_jobs_routing_has_mode, drop constraint rewrite_jobs_routing_is_readable, drop constraint rewrite_jobs_times_are_finite`,
	} {
		b.Run(name, func(b *testing.B) {
			d := storetest.New(b)
			if _, err := d.Conn(b).Exec(b.Context(), prepare); err != nil {
				b.Fatal(err)
			}
			backend := d.Open(b, store.RoleBackend).Rewrites()
			for b.Loop() {
				orders, texts := make([]rewrite.Order, 1000), make([]rewrite.Sealed, 1000)
				for i := range orders {
					orders[i], texts[i] = order(), sealed("text")
				}
				if _, err := backend.Enqueue(b.Context(), orders, texts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
