package storetest

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres/postgrestest"
	"github.com/criticizer/criticizer/store"
)

// A clone has nothing of the test before: neither rows nor a changed schema.
func TestCloneIsRestored(t *testing.T) {
	t.Parallel()
	d := New(t)
	cluster := os.Getenv(URLVariable)
	admin, err := pgx.Connect(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	config, err := pgx.ParseConfig(d.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	insert := `insert into criticizer.audit_log (actor, action, object, detail) values ('a', 'b', 'c', '{}') returning id`
	for name, tt := range map[string]struct {
		left     string // by the test before
		restored bool
	}{
		"rows that no role may delete": {insert, true},
		"a row of the template":        {`update criticizer.migrations set fingerprint = ''`, false},
		"a dropped column":             {`alter table criticizer.audit_log drop column detail cascade`, false},
		"a grant":                      {`grant select on criticizer.jobs to public`, false},
	} {
		if _, err := d.Conn(t).Exec(t.Context(), tt.left); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := restore(t.Context(), admin, cluster, config.Database)
		if (err == nil) != tt.restored {
			t.Errorf("%s: restored with %v", name, err)
		}
		if err != nil {
			migrated, err := postgrestest.Template(cluster, store.Schema())
			if err == nil {
				err = create(t.Context(), admin, cluster, config.Database, migrated)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var id int64
		if err := d.Conn(t).QueryRow(t.Context(), insert).Scan(&id); err != nil || id != 1 {
			t.Errorf("%s: the first row afterwards has ID %d, %v", name, id, err)
		}
		if err := restore(t.Context(), admin, cluster, config.Database); err != nil {
			t.Fatal(err)
		}
	}
}
