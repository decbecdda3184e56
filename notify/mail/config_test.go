package mail

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

func TestConfigProblemsNameTheField(t *testing.T) {
	t.Parallel()
	good := Config{From: testFrom, Host: "mail.example.com"}
	for _, tc := range []struct {
		field  string
		change func(*Config)
	}{
		{"From", func(c *Config) { c.From = "" }},
		{"From", func(c *Config) { c.From = "criticizer@example.com\r\nBcc: eve@example.com" }},
		{"From", func(c *Config) { c.From = `"a b"@example.com` }},
		{"From", func(c *Config) { c.From = "criticizer@bücher.example" }},
		{"MessageIDDomain", func(c *Config) { c.From = "criticizer@a-rather-long-name.example.com" }},
		{"MessageIDDomain", func(c *Config) { c.MessageIDDomain = "exa mple.com" }},
		{"Host", func(c *Config) { c.Host = "" }},
		{"Port", func(c *Config) { c.Port = 70000 }},
		{"TLS", func(c *Config) { c.TLS = "opportunistic" }},
		{"TLS", func(c *Config) { c.TLS = TLSNone }},
		{"Timeout", func(c *Config) { c.Timeout = 15 * time.Second }},
		{"Password", func(c *Config) { c.Username = "criticizer" }},
		{"Username", func(c *Config) { c.Password = secret.New("x") }},
		{"PasswordOld", func(c *Config) { c.PasswordOld = secret.New("x") }},
		{"TokenFile", func(c *Config) { c.TokenFile = "token" }},
		{"TokenFile", func(c *Config) { c.Username, c.Password, c.TokenFile = "criticizer", secret.New("x"), "token" }},
	} {
		cfg := good
		tc.change(&cfg)
		_, err := NewSMTPProvider(slog.New(slog.DiscardHandler), cfg)
		if failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("error %v, want one about %s", err, tc.field)
		}
		sender := tc.field == "From" || tc.field == "MessageIDDomain"
		if _, err := New(slog.New(slog.DiscardHandler), nil, cfg); sender != (err != nil) {
			t.Errorf("New on a wrong %s: %v", tc.field, err)
		}
	}
	if _, err := NewSMTPProvider(slog.New(slog.DiscardHandler), good); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	if _, err := NewInboxProvider(slog.New(slog.DiscardHandler), good); failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), "InboxURL") {
		t.Errorf("error %v, want one about InboxURL", err)
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy TLSPolicy
		port   int
	}{{"", 587}, {TLSMandatory, 587}, {TLSImplicit, 465}, {TLSNone, 25}} {
		c := Config{From: testFrom, Host: "localhost", TLS: tc.policy}.withDefaults()
		if c.Port != tc.port || c.MessageIDDomain != "example.com" || c.Timeout != 10*time.Minute || c.TLS == "" {
			t.Errorf("%q: %+v", tc.policy, c)
		}
	}
}
