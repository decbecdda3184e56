package deploy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An upgrade replaces the workers in the order of docs/upgrade.md, stage by stage: the label
// selects a stage, and its new configuration is already there, with the migration.
func TestUpgradeInOrder(t *testing.T) {
	t.Parallel()
	order := regexp.MustCompile("in the order `([^.]+)`: readers").FindStringSubmatch(string(read(t, root+"/docs/upgrade.md")))
	if order == nil {
		t.Fatal("docs/upgrade.md has no order")
	}
	stages := strings.Split(order[1], "`, `")
	if want := "for stage in " + strings.Join(stages, " ") + "; do\n        kubectl apply -k docs/deploy/kubernetes/overlays/production -l app.kubernetes.io/component=$stage\n"; !strings.Contains(string(read(t, docs+"/README.md")), want) {
		t.Errorf("the page lacks %q", want)
	}
	production, migration := build(t, "production"), build(t, "production/migrate")
	for _, d := range production.deployments {
		if d.Labels["app.kubernetes.io/component"] != stageOf(d.Name) || !slices.Contains(stages, stageOf(d.Name)) {
			t.Errorf("%s has the labels %v", d.Name, d.Labels)
		}
	}
	if len(production.deployments) != len(stages) {
		t.Errorf("%d stages are replaced, there are %d", len(stages), len(production.deployments))
	}
	if before, after := migration.configs[0], production.configs[0]; before.Name != after.Name || before.Namespace != after.Namespace || len(before.Labels)+len(production.namespaces[0].Labels) != 1 {
		t.Errorf("the migration has the configuration %v, the workers have %v", before.ObjectMeta, after.ObjectMeta)
	}
}

// The page applies overlays that exist, and all of them.
func TestDocumentedOverlaysExist(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`kubectl apply -k docs/deploy/kubernetes/overlays/([a-z/]+)`).FindAllStringSubmatch(string(read(t, docs+"/README.md")), -1) {
		if found[match[1]] = true; !slices.Contains(overlays, match[1]) {
			t.Errorf("the page applies %s", match[1])
		}
	}
	for _, overlay := range overlays {
		if !found[overlay] {
			t.Errorf("the page does not apply %s", overlay)
		}
	}
}
