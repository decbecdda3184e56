package mail

import (
	"log/slog"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// Package config checks the rest.
func TestUnsafeConfigIsRejected(t *testing.T) {
	t.Parallel()
	good := Config{From: testFrom, Host: "mail.example.com", Keys: testKeys}
	for name, change := range map[string]func(*Config){
		"no sender":                  func(c *Config) { c.From = "" },
		"header injection":           func(c *Config) { c.From = "criticizer@example.com\r\nBcc: eve@example.com" },
		"quoted sender":              func(c *Config) { c.From = `"a b"@example.com` },
		"sender not in ASCII":        func(c *Config) { c.From = "criticizer@bücher.example" },
		"default domain too long":    func(c *Config) { c.From = "criticizer@a-rather-long-name.example.com" },
		"not a domain":               func(c *Config) { c.MessageIDDomain = "exa mple.com" },
		"clear text to another host": func(c *Config) { c.TLS = TLSNone },
		"clear text to an address":   func(c *Config) { c.TLS, c.Host = TLSNone, "192.0.2.1" },
	} {
		cfg := good
		change(&cfg)
		lg := slog.New(slog.DiscardHandler)
		_, err := NewSMTPProvider(lg, cfg)
		if _, err2 := New(lg, nil, cfg); failure.ClassOf(err) != failure.ConfigInvalid || failure.ClassOf(err2) != failure.ConfigInvalid {
			t.Errorf("%s: %v, %v", name, err, err2)
		}
	}
	newSMTP(t, good)
	box := Mailbox{Host: "imap.example.com", TLS: TLSNone}
	for name, cfg := range map[string]EvidenceConfig{"journal": {Journal: box}, "bounces": {Bounces: box}, "log": {MTALog: t.TempDir() + "/none"}} {
		if _, err := NewEvidencedProvider(newSMTP(t, good), cfg); failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
