package postgres_test

import (
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
)

// The driver's default, sslmode=prefer, falls back to clear text if the server, or
// an attacker on the network, rejects TLS.
func TestClearTextIsRefused(t *testing.T) {
	t.Parallel()
	for url, refused := range map[string]bool{
		"postgres://u:hunter2@db/d":                      true,
		"postgres://u:hunter2@db/d?sslmode=prefer":       true,
		"postgres://u:hunter2@db/d?sslmode=allow":        true,
		"postgres://u:hunter2@db/d?sslmode=disable":      true,
		"host=db user=u password=hunter2 sslmode=prefer": true,
		"postgres://u@127.0.0.1,db/d?sslmode=disable":    true,
		"postgres://u@db/d?sslmode=require":              false,
		"postgres://u@db/d?sslmode=verify-full":          false,
		"postgres://u@127.0.0.1/d?sslmode=disable":       false,
		"postgres://u@[::1]/d":                           false,
		"postgres://u@localhost/d":                       false,
		"postgres:///d?host=/var/run/postgresql":         false,
		"postgres://u@127.0.0.1.example.com/d":           true,
		"postgres://u@localhost/d?host=db":               true,
	} {
		err := postgres.Config{URL: secret.New(url)}.Check()
		if (failure.ClassOf(err) == failure.ConfigInvalid) != refused {
			t.Errorf("%s: %v, want it refused: %t", url, err, refused)
		}
	}
	allowed := postgres.Config{URL: secret.New("postgres://u@db/d?sslmode=disable"), ClearText: true}
	if err := allowed.Check(); err != nil {
		t.Errorf("allowed clear text: %v", err)
	}
}
