package e2e

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/deploy/README.md says which role the login of each stage's worker needs:
// with it and no other, doctor finds nothing wrong with the database.
func TestStagesWorkWithTheRolesOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `(criticizer_[a-z]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) != 6 {
		t.Fatalf("the page has the roles of %d stages, want 6", len(rows))
	}
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": clean}))
	conn := in.database.Conn(t)
	for _, row := range rows {
		stage, role := row[1], row[2]
		login := "stage_" + strings.ToLower(rand.Text())
		if _, err := conn.Exec(t.Context(), "create role "+login+" login password 'of-a-test' in role "+role); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := conn.Exec(context.Background(), "drop role "+login); err != nil {
				t.Error(err)
			}
		})
		address, err := url.Parse(in.database.URL.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword(login, "of-a-test")
		found, _ := in.doctor([]string{"CRITICIZER_DATABASE_URL=" + address.String()}, "--stages", stage)
		if !hasDiagnosis(found, "postgres", "ok", "the login acts as "+role) {
			t.Errorf("stage %s as %s: %+v", stage, role, found)
		}
	}
}
