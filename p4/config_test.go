package p4

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	command, err := os.Executable()
	testkit.NoError(t, err)
	open := filepath.Join(t.TempDir(), "open")
	testkit.NoError(t, os.Mkdir(open, 0o755))
	state := filepath.Join(t.TempDir(), "state")
	for name, adjust := range map[string]func(*Config){
		"no port":                      func(c *Config) { c.Port = "" },
		"a port that is an option":     func(c *Config) { c.Port = "-p" },
		"a port that runs a shell":     func(c *Config) { c.Port = "rsh:sh" },
		"no user":                      func(c *Config) { c.User = "" },
		"a user of two words":          func(c *Config) { c.User = "a b" },
		"an empty allow list":          func(c *Config) { c.Allowed = nil },
		"an allow list of all depots":  func(c *Config) { c.Allowed = []string{"//..."} },
		"a malformed embargo":          func(c *Config) { c.Embargoed = []string{"x"} },
		"a relative command":           func(c *Config) { c.Command = "bin/p4" },
		"a missing command":            func(c *Config) { c.Command = "/nonexistent/p4" },
		"a relative state directory":   func(c *Config) { c.StateDir = "state" },
		"an open state directory":      func(c *Config) { c.StateDir = open },
		"a state directory in a file":  func(c *Config) { c.StateDir = command + "/x" },
		"a negative timeout":           func(c *Config) { c.Timeout = -time.Second },
		"an unknown policy":            func(c *Config) { c.MixedChanges = "some" },
		"a skip rule for a local path": func(c *Config) { c.Skip.Paths = []string{"depot/..."} },
		"a depot path as a pattern":    func(c *Config) { c.Selection.Exclude = []string{"//depot/x/..."} },
	} {
		cfg := config.Default[Config]()
		cfg.Command, cfg.Port, cfg.User, cfg.StateDir, cfg.Allowed = command, "perforce:1666", "reader", state, []string{"//depot/..."}
		if _, err := New(slog.New(slog.DiscardHandler), cfg); err != nil {
			t.Fatal(err)
		}
		adjust(&cfg)
		if _, err := New(slog.New(slog.DiscardHandler), cfg); failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%s: error = %v, want ConfigInvalid", name, err)
		}
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]struct {
		host      string
		encrypted bool
	}{
		"1666": {"localhost", false}, "perforce:1666": {"perforce", false}, "tcp46:perforce:1666": {"perforce", false},
		":1666": {"localhost", false}, "ssl::1666": {"localhost", true},
		"ssl:1666": {"localhost", true}, "ssl64:perforce:1666": {"perforce", true},
		"[::1]:1666": {"::1", false}, "tcp6:[::1]:1666": {"::1", false}, "ssl:[2001:db8::1]:1666": {"2001:db8::1", true},
	} {
		if got := (Config{Port: port}).Connections()[0]; got.Host != want.host || got.Encrypted != want.encrypted {
			t.Errorf("%s: %+v, want %+v", port, got, want)
		}
	}
}
