package store_test

import (
	"maps"
	"testing"

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
		"criticizer_dead_letters_escalated":     {nil, 1, 1},
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

// The counts of states are those of the rows, before and after the watch has folded them.
func TestFiguresCountRows(t *testing.T) {
	t.Parallel()
	conn := storetest.New(t).Conn(t)
	exec(t, conn, goodRows)
	exec(t, conn, `
		insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) select 'k' || n, n, 1, 's', 'r' from generate_series(2, 9) n;
		update criticizer.jobs set state = 'canceled', finished_at = now() where changelist_id between 3 and 6;
		delete from criticizer.jobs where changelist_id in (2, 3);
		update criticizer.deliveries set status = 'sent', notified_at = now(), notification_id = 'm', confirmed_at = now();
		update criticizer.dead_letters set state = 'replaying'`)
	for _, when := range []string{"before", "after"} {
		wrong := query[int](t, conn, `
			with counted (name, labels, figure) as (
				select 'criticizer_reviews', jsonb_build_object('state', state), count(*)::double precision from criticizer.jobs group by state
				union all select 'criticizer_deliveries', jsonb_build_object('status', status), count(*) from criticizer.deliveries group by status
				union all select 'criticizer_deliveries_confirmed', '{}', count(*) from criticizer.deliveries where confirmed_at is not null
				union all select 'criticizer_dead_letters', jsonb_build_object('state', state, 'stage', stage, 'class', error_class), count(*)
				from criticizer.dead_letters group by state, stage, error_class),
			shown as (select * from criticizer.figures f where f.name in (select name from counted))
			select count(*) from ((table counted except table shown) union all (table shown except table counted)) differing`)
		if wrong > 0 {
			t.Errorf("%s the fold %d counts differ from the rows", when, wrong)
		}
		exec(t, conn, `update criticizer.watch set due_at = now()`)
	}
	if n := query[int](t, conn, `select count(*) from criticizer.tallies`); n != 5 {
		t.Errorf("%d rows are left after the fold, want one per count", n)
	}
}

func TestRewriteFigures(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	working := d.Open(t, store.RoleRewrite)
	queue{backend: d.Open(t, store.RoleBackend).Rewrites()}.enqueue(t, order())
	figures := must(working.RewriteFigures(t.Context()))(t)
	if len(figures) != 3 || figures[0].Labels["status"] != "queued" || figures[0].Value != 1 || figures[2].Labels["namespace"] != "rewrite" {
		t.Errorf("figures are %v, want one queued job, its age, and the lag of retention", figures)
	}
}
