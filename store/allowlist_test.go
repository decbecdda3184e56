package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// Every version records who changed the allow list, when, why and what
// (security 9.1.5).
func TestAllowListVersionsAreAudited(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	db := d.Open(t, store.RoleOperator)
	if _, err := db.AppliedAllowList(t.Context()); failure.ClassOf(err) != failure.NotFound {
		t.Fatalf("before the first version: %v", err)
	}
	first := store.AllowList{Allowed: []string{"//depot/b/...", "//depot/a/..."}}
	_, _, err := db.ApplyAllowList(t.Context(), first, "olga@desk", "T-1")
	testkit.NoError(t, err)
	second := store.AllowList{Allowed: []string{"//depot/a/..."}, Embargoed: []string{"//depot/a/x"}}
	version, changes, err := db.ApplyAllowList(t.Context(), second, "omar@desk", "T-2")
	testkit.NoError(t, err)
	if want := []string{"-allow //depot/b/...", "+embargo //depot/a/x"}; !slices.Equal(changes, want) {
		t.Errorf("changes = %q, want %q", changes, want)
	}
	applied := must(d.Open(t, store.RoleFetch).AppliedAllowList(t.Context()))(t)
	if applied.ID != version.ID || applied.Who != "omar@desk" || applied.Reason != "T-2" || len(second.Changes(applied.AllowList)) != 0 {
		t.Errorf("in force = %+v, want %+v", applied, version)
	}
	audited := query[string](t, d.Conn(t), `select string_agg(claimed || ' ' || action || ' ' || object || ' ' || detail, ';' order by id) from criticizer.audit_log`)
	for _, want := range []string{"olga@desk allowlist.apply allowlist:1", "omar@desk allowlist.apply allowlist:2", "T-2", "-allow //depot/b/..."} {
		if !strings.Contains(audited, want) {
			t.Errorf("audit log lacks %q: %s", want, audited)
		}
	}
}

func TestSameAllowListMakesNoVersion(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Open(t, store.RoleOperator)
	_, _, err := db.ApplyAllowList(t.Context(), store.AllowList{Allowed: []string{"//depot/a/...", "//depot/b/..."}}, "olga", "T-1")
	testkit.NoError(t, err)
	reordered := store.AllowList{Allowed: []string{"//depot/b/...", "//depot/a/...", "//depot/b/..."}}
	version, changes, err := db.ApplyAllowList(t.Context(), reordered, "omar", "T-2")
	testkit.NoError(t, err)
	if len(changes) != 0 || version.Who != "olga" {
		t.Errorf("the same list in another order is version %+v, which changed %q", version, changes)
	}
	versions := must(db.AllowListVersions(t.Context()))(t)
	if len(versions) != 1 {
		t.Errorf("%d versions, want 1", len(versions))
	}
}
