package llm

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm/llmsim"
)

// During a key rotation the new key is tried first, then the old one. The log
// names which of them is in use, never the key (security 9.3.5).
func TestKeysOverlap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		accepted, old string
		calls         int
		says          string
		class         failure.Class
	}{
		"the new key is accepted":         {"key-new", "key-old", 1, "key=new", ""},
		"only the old one is":             {"key-old", "key-old", 2, "key=old", ""},
		"neither is":                      {"key-other", "key-old", 2, "key=none", failure.AuthDenied},
		"without an old key there is one": {"key-old", "", 1, "", failure.AuthDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			sim := llmsim.New(llmsim.Config{APIKey: secret.New(tt.accepted)})
			server := httptest.NewServer(sim)
			defer server.Close()
			cfg := config.Default[Config]()
			cfg.BaseURL, cfg.APIKey, cfg.APIKeyOld, cfg.Model = server.URL+"/v1", secret.New("key-new"), secret.New(tt.old), "m"
			r, err := New(slog.New(slog.NewTextHandler(&log, nil)), newRecordingGuard(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := r.Ping(t.Context()); tt.class == "" && err != nil || tt.class != "" && failure.ClassOf(err) != tt.class {
					t.Errorf("ping: %v, want class %q", err, tt.class)
				}
			}
			if calls := sim.Stats().Calls; calls != 2*tt.calls {
				t.Errorf("%d calls for two pings, want %d", calls, 2*tt.calls)
			}
			if tt.says != "" && strings.Count(log.String(), tt.says) != 1 || strings.Contains(log.String(), "key-") {
				t.Errorf("want %q once and no key in\n%s", tt.says, &log)
			}
		})
	}
}

// A rotated key is used for the next request (security 9.3.5).
func TestKeyIsReadForEveryRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("key-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := secret.Lookup("KEY", func(name string) string { return map[string]string{"KEY_FILE": file}[name] })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(llmsim.New(llmsim.Config{APIKey: secret.New("key-2")}))
	defer server.Close()
	cfg := config.Default[Config]()
	cfg.BaseURL, cfg.APIKey, cfg.Model = server.URL+"/v1", key, "m"
	r, err := New(slog.New(slog.DiscardHandler), newRecordingGuard(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Ping(t.Context()); failure.ClassOf(err) != failure.AuthDenied {
		t.Errorf("ping with the key before: %v, want it refused", err)
	}
	if err := os.WriteFile(file, []byte("key-2"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret.Reload(t.Context(), slog.New(slog.DiscardHandler), []secret.Followed{{Name: "KEY", Value: key}})
	if err := r.Ping(t.Context()); err != nil {
		t.Errorf("ping with the key of now: %v", err)
	}
}
