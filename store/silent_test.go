package store_test

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store"
)

// A hanging server accepts connections, because its kernel does, and never answers.
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	defer func() { _ = silent.Close() }()
	begun := time.Now()
	for wait, parameter := range map[time.Duration]string{10 * time.Second: "", time.Second: "?connect_timeout=1"} {
		_, err = store.Open(t.Context(), slog.New(slog.DiscardHandler), store.Config{URL: secret.New("postgres://u@" + silent.Addr().String() + "/d" + parameter)}, "")
		if took := time.Since(begun); took < wait || took > wait+30*time.Second {
			t.Errorf("given up after %s, want %s", took, wait)
		}
		wantClass(t, err, failure.NetworkTimeout)
		begun = time.Now()
	}
}
