package mail

import (
	"testing"

	"github.com/criticizer/criticizer/internal/config"
)

func TestUnsafeConfigIsRejected(t *testing.T) {
	t.Parallel()
	good := Config{From: testFrom, Host: "mail.example.com", Keys: testKeys}
	for name, change := range map[string]func(*Config){
		"":                           func(c *Config) { c.EHLOName = "[192.0.2.5]" },
		"header injection":           func(c *Config) { c.From = "criticizer@example.com\r\nBcc: eve@example.com" },
		"quoted sender":              func(c *Config) { c.From = `"a b"@example.com` },
		"sender not in ASCII":        func(c *Config) { c.From = "criticizer@bücher.example" },
		"default domain too long":    func(c *Config) { c.From = "criticizer@a-rather-long-name.example.com" },
		"not a domain":               func(c *Config) { c.MessageIDDomain = "exa mple.com" },
		"not an EHLO name":           func(c *Config) { c.EHLOName = "mail.example.com 8BITMIME" },
		"unsubscribe to no address":  func(c *Config) { c.Unsubscribe = "reviews" },
		"one click by no reader":     func(c *Config) { c.Unsubscribe = "https://example.com/unsubscribe" },
		"clear text to another host": func(c *Config) { c.TLS = TLSNone },
		"clear text to an address":   func(c *Config) { c.TLS, c.Host = TLSNone, "192.0.2.1" },
	} {
		cfg := good
		change(&cfg)
		var p config.Problems
		if cfg.Check(&p); (p.Err() == nil) != (name == "") {
			t.Errorf("%s: %v", name, p.Err())
		}
	}
	for _, host := range []string{"127.0.0.1", "imap.example.com"} {
		var p config.Problems
		if (Mailbox{Host: host, TLS: TLSNone, Username: "u", TokenFile: "t"}).Check(&p); (p.Err() == nil) != (host == "127.0.0.1") {
			t.Errorf("a mailbox in clear text on %s: %v", host, p.Err())
		}
	}
	if _, err := NewProvider(newSMTP(t, good), EvidenceConfig{MTALog: t.TempDir() + "/none"}); err == nil {
		t.Error("a log that cannot be read is accepted")
	}
}
