package p4

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	for name, c := range map[string]struct {
		adjust func(*Config)
		says   string
	}{
		"no port":                     {func(c *Config) { c.Port = "" }, "port"},
		"a port that is an option":    {func(c *Config) { c.Port = "-p" }, "port"},
		"a port that runs a shell":    {func(c *Config) { c.Port = "rsh:sh" }, "9.2"},
		"no user":                     {func(c *Config) { c.User = "" }, "user"},
		"a user that is two words":    {func(c *Config) { c.User = "a b" }, "user"},
		"a charset that is an option": {func(c *Config) { c.Charset = "-C" }, "charset"},
		"an empty allow-list":         {func(c *Config) { c.Allowed = nil }, "allow-list is empty"},
		"an allow-list with a hole":   {func(c *Config) { c.Allowed = []string{"//..."} }, "//..."},
		"a broken embargo":            {func(c *Config) { c.Embargoed = []string{"x"} }, "embargo list"},
		"a relative command":          {func(c *Config) { c.Command = "bin/p4" }, "relative"},
		"a command that is not there": {func(c *Config) { c.Command = "/nonexistent/p4" }, "find the p4 command"},
		"a relative state directory":  {func(c *Config) { c.StateDir = "state" }, "absolute"},
		"an open state directory":     {func(c *Config) { c.StateDir = open }, "chmod 700"},
		"a state directory in a file": {func(c *Config) { c.StateDir = command + "/x" }, "state directory"},
		"a negative timeout":          {func(c *Config) { c.Timeout = -time.Second }, "negative"},
	} {
		cfg := Config{Command: command, Port: "perforce:1666", User: "reader", StateDir: state, Allowed: []string{"//depot/..."}}
		if _, err := New(slog.New(slog.DiscardHandler), cfg); err != nil {
			t.Fatal(err)
		}
		c.adjust(&cfg)
		_, err := New(slog.New(slog.DiscardHandler), cfg)
		if failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error = %v, want ConfigInvalid with %q", name, err, c.says)
		}
	}
}

// What a person made by running a check as root would keep the workers out.
func TestStateDirectoryOfAnotherUser(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if foreign(info, owner) || foreign(info, 0) || !foreign(info, owner+1) {
		t.Errorf("owner %v, root %v, another user %v; want only the last kept out", foreign(info, owner), foreign(info, 0), foreign(info, owner+1))
	}
}

// security 9.2: the command is resolved once, to an absolute path.
func TestCommandIsResolvedFromPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p4"), []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	path, err := Config{}.withDefaults().executable()
	if err != nil || path != filepath.Join(dir, "p4") {
		t.Errorf("executable = %q, %v", path, err)
	}
	t.Setenv("PATH", ".")
	t.Chdir(dir)
	if path, err := (Config{}.withDefaults()).executable(); err == nil {
		t.Errorf("executable of the working directory is taken: %q", path)
	}
}
