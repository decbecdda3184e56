package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	exec(t, d.Conn(t), goodRows)
	exec(t, d.Conn(t), `
		update criticizer.deliveries set attempts = 1, last_attempt_at = now(), begun = true, created_at = now() - interval '1 hour';
		update criticizer.dead_letters set escalated = true, recorded_at = now() - interval '2 hours';
		update raw.artifacts set stored_at = now() - interval '9 days', expires_at = now() - interval '2 days'`)
	tests := map[string]struct {
		labels   map[string]string
		min, max float64
	}{
		"criticizer_reviews":                    {map[string]string{"state": "in_progress"}, 1, 1},
		"criticizer_dead_letters":               {map[string]string{"state": "open", "stage": "llm", "class": "UNKNOWN"}, 1, 1},
		"criticizer_dead_letters_in_a_row":      {map[string]string{"class": "UNKNOWN"}, 1, 1},
		"criticizer_dead_letters_escalated":     {nil, 1, 1},
		"criticizer_review_outcomes":            {map[string]string{"outcome": "clean"}, 0, 0},
		"criticizer_findings":                   {map[string]string{"severity": "high"}, 2, 2},
		"criticizer_opinions":                   {map[string]string{"opinion": "wrong"}, 1, 1},
		"criticizer_dead_letter_oldest_seconds": {nil, 7200, 7260},
		"criticizer_replays_unexplained":        {nil, 1, 1},
		"criticizer_pages_unsent":               {nil, 1, 1},
		"criticizer_outbox_depth":               {nil, 1, 1},
		"criticizer_outbox_oldest_seconds":      {nil, 3600, 3660},
		"criticizer_deliveries_ambiguous":       {nil, 1, 1},
		"criticizer_retention_lag_seconds":      {map[string]string{"namespace": "raw"}, 172800, 172860},
	}
	for _, role := range []store.Role{store.RoleBookkeeping, store.RoleOperator} {
		figures := must(d.Open(t, role).Figures(t.Context()))(t)
		for name, want := range tests {
			found := false
			for _, f := range figures {
				if f.Name == name && (len(want.labels) == 0 || maps.Equal(f.Labels, want.labels)) {
					found = f.Value >= want.min && f.Value <= want.max
				}
			}
			if !found {
				t.Errorf("%s: %s is not among %v", role, name, figures)
			}
		}
	}
}

// What accumulates is counted for a day, and what waits for somebody is counted for ever.
func TestFiguresCountRows(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	exec(t, d.Conn(t), `
		insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id, state, outcome, created_at, finished_at)
		select state || age, row_number() over (), 1, 's', 'r', state, case when state = 'succeeded' then 'clean' end, now() - age, case when state <> 'in_progress' then now() - age end
		from unnest(array['in_progress', 'succeeded', 'retryable_failed', 'canceled']) state, unnest(array['23 hours', '25 hours']::interval[]) age;
		insert into criticizer.deliveries (changelist_id, review_version, recipient, status, notification_id, notified_at, error_class, confirmed_at)
		select changelist_id, 1, status || '@corp.test', status, 'm', case when status = 'sent' then created_at end, case when status = 'failed' then 'X' end,
			case when status = 'sent' then created_at end
		from criticizer.jobs, unnest(array['pending', 'sent', 'failed', 'held', 'waived']) status where state = 'in_progress'`)
	got := map[string]float64{}
	for _, f := range must(d.Open(t, store.RoleOperator).Figures(t.Context()))(t) {
		switch f.Name {
		case "criticizer_reviews", "criticizer_deliveries", "criticizer_deliveries_confirmed":
			got[f.Name+f.Labels["state"]+f.Labels["status"]] = f.Value
		}
	}
	want := map[string]float64{
		"criticizer_reviewsin_progress": 2, "criticizer_reviewssucceeded": 1, "criticizer_reviewsretryable_failed": 2, "criticizer_reviewscanceled": 1,
		"criticizer_deliveriespending": 2, "criticizer_deliveriessent": 1, "criticizer_deliveriesfailed": 2, "criticizer_deliveriesheld": 2, "criticizer_deliverieswaived": 2,
		"criticizer_deliveries_confirmed": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("counts are %v, want %v", got, want)
	}
}

// Operators see an outage until it ends, or until its process has not confirmed it for a while.
func TestOutages(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	llm := d.Open(t, store.RoleLLM)
	outage := store.Outage{Stage: "llm", Worker: "worker 1 on a", Since: time.Now().Add(-time.Hour), ErrorClass: failure.AuthDenied, Reason: "401"}
	testkit.NoError(t, llm.SaveOutage(t.Context(), outage))
	outage.HalfOpen, outage.Reason = true, "403"
	testkit.NoError(t, llm.SaveOutage(t.Context(), outage))
	other := outage
	other.Worker = "worker 2 on a"
	testkit.NoError(t, llm.SaveOutage(t.Context(), other))
	testkit.NoError(t, llm.DeleteOutage(t.Context(), "llm", other.Worker))
	found := must(books.Outages(t.Context()))(t)
	if len(found) != 1 || found[0].Worker != outage.Worker || !found[0].HalfOpen || found[0].Reason != "403" || found[0].ErrorClass != failure.AuthDenied ||
		found[0].Since.Sub(outage.Since).Abs() > time.Minute {
		t.Errorf("found %+v, want %+v", found, outage)
	}
	exec(t, d.Conn(t), `update criticizer.outages set seen_at = now() - interval '6 minutes'`)
	if stale := must(books.Outages(t.Context()))(t); len(stale) != 0 {
		t.Errorf("found %+v of a process that has died", stale)
	}
}
