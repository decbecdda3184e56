package deploy

import (
	"encoding/json"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboardSchema holds the dashboard against the schemas that Grafana publishes of
// dashboards, panels and Prometheus queries. Grafana itself is in no package source of the
// tests.
func TestDashboardSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text := read(t, docs+"/dashboard.json")
	// UnmarshalJSONStrict returns an empty list of errors, which is not nil, and then
	// leaves the panels out.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Error(err)
	}
	var board dashboard.Dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if err := board.Validate(); err != nil {
		t.Error(err)
	}
	for _, item := range board.Panels {
		panel := item.Panel
		if panel == nil {
			t.Fatal("the dashboard has a row; this test knows panels only")
		}
		// The schema allows panels of plugins that it does not know.
		if _, known := cog.NewRuntime().ConfigForPanelcfgVariant(panel.Type); !known {
			t.Errorf("panel %q: Grafana has no type %q", *panel.Title, panel.Type)
		}
		for _, query := range panel.Targets {
			if query.DataqueryType() != "prometheus" {
				t.Errorf("panel %q: the query %+v is not for Prometheus", *panel.Title, query)
			}
		}
	}
}
