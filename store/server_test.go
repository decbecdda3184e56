package store_test

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

// Every role can read the version and time of the server.
func TestServerTellsOfItself(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	for _, role := range []store.Role{"", store.RoleLLM, store.RoleRetention, store.RoleReader} {
		got, err := d.Open(t, role).Server(t.Context())
		noError(t, err)
		if got.MajorVersion < store.OldestPostgres || time.Since(got.Clock).Abs() > time.Minute || !got.Superuser {
			t.Errorf("as %q the server says %+v", role, got)
		}
	}
}
