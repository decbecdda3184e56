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
		figures, err := d.Open(t, role).Figures(t.Context())
		noError(t, err)
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
