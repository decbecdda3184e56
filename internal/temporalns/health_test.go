package temporalns_test

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
)

func TestHealthOfANamespace(t *testing.T) {
	t.Parallel()
	n, _ := temporalnstest.New(t)
	if kept, err := n.Retention(t.Context()); err != nil || kept < time.Hour {
		t.Errorf("keeps histories for %s: %v", kept, err)
	}
	if err := n.RegisterAttributes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missing, err := n.MissingAttributes(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("lacks %v: %v", missing, err)
	}
	if served, err := n.Served(t.Context(), "an-unserved-queue"); err != nil || served {
		t.Errorf("an unserved queue is served: %t, %v", served, err)
	}
}
