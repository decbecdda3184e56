package store_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// Every role can read the version and time of the server.
func TestServerTellsOfItself(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, role := range []store.Role{"", store.RoleLLM, store.RoleRetention, store.RoleReader} {
		got := must(d.Open(t, role).Server(t.Context()))(t)
		if got.MajorVersion < store.OldestPostgres || time.Since(got.Clock).Abs() > time.Minute || !got.Superuser {
			t.Errorf("as %q the server says %+v", role, got)
		}
	}
}

// A database is created once.
func TestCreateDatabase(t *testing.T) {
	t.Parallel()
	server := storetest.NewEmpty(t)
	conn, name := server.Conn(t), "criticizer_test_"+rand.Text()
	t.Cleanup(func() {
		must(conn.Exec(context.Background(), `drop database "`+name+`" with (force)`))(t)
	})
	for range 2 {
		created := must(postgres.CreateDatabase(t.Context(), server.URL, name))(t)
		(&storetest.Database{URL: created}).Open(t, "")
	}
	_, err := postgres.CreateDatabase(t.Context(), secret.New("host=127.0.0.1 sslmode=disable"), name)
	wantClass(t, err, failure.ConfigInvalid)
}
