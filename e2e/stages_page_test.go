package e2e

import (
	"regexp"
	"testing"
)

// With only the role that docs/deploy/README.md lists for a stage, doctor accepts the
// stage's database login.
func TestDocumentedRolesSuffice(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `(criticizer_[a-z]+)` \\|").FindAllStringSubmatch(readFile(t, "../docs/deploy/README.md"), -1)
	if len(rows) != 6 {
		t.Fatalf("the page lists the roles of %d stages, want 6", len(rows))
	}
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	for _, row := range rows {
		stage, role := row[1], row[2]
		found, _ := in.doctor([]string{"CRITICIZER_DATABASE_URL=" + in.login(role)}, "--stages", stage)
		if !hasDiagnosis(found, "postgres", "ok", role) {
			t.Errorf("stage %s as %s: %+v", stage, role, found)
		}
	}
}
