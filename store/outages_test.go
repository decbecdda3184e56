package store_test

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
)

// Operators see an outage until it ends, or until its process has not confirmed it for a while.
func TestOutages(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	llm := d.Open(t, store.RoleLLM)
	outage := store.Outage{Stage: "llm", Worker: "worker 1 on a", Since: time.Now().Add(-time.Hour), Class: failure.AuthDenied, Reason: "401"}
	testkit.NoError(t, llm.SaveOutage(t.Context(), outage))
	outage.HalfOpen, outage.Reason = true, "403"
	testkit.NoError(t, llm.SaveOutage(t.Context(), outage))
	other := outage
	other.Worker = "worker 2 on a"
	testkit.NoError(t, llm.SaveOutage(t.Context(), other))
	testkit.NoError(t, llm.DeleteOutage(t.Context(), "llm", other.Worker))
	found := must(books.Outages(t.Context()))(t)
	if len(found) != 1 || found[0].Worker != outage.Worker || !found[0].HalfOpen || found[0].Reason != "403" || found[0].Class != failure.AuthDenied ||
		found[0].Since.Sub(outage.Since).Abs() > time.Minute {
		t.Errorf("found %+v, want %+v", found, outage)
	}
	exec(t, d.Conn(t), `update criticizer.outages set seen_at = now() - interval '6 minutes'`)
	if stale := must(books.Outages(t.Context()))(t); len(stale) != 0 {
		t.Errorf("found %+v of a process that has died", stale)
	}
}
