package mail

import (
	"fmt"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

func TestUnsafeConfigIsRejected(t *testing.T) {
	t.Parallel()
	good := Config{From: testFrom, Server: "smtp://mail.example.com", Keys: testKeys}
	for name, change := range map[string]func(*Config){
		"":                          func(c *Config) { c.EHLOName = "[192.0.2.5]" },
		"header injection":          func(c *Config) { c.From = "criticizer@example.com\r\nBcc: eve@example.com" },
		"quoted sender":             func(c *Config) { c.From = `"a b"@example.com` },
		"sender not in ASCII":       func(c *Config) { c.From = "criticizer@bücher.example" },
		"default domain too long":   func(c *Config) { c.From = "criticizer@a-rather-long-name.example.com" },
		"not a domain":              func(c *Config) { c.MessageIDDomain = "exa mple.com" },
		"not an EHLO name":          func(c *Config) { c.EHLOName = "mail.example.com 8BITMIME" },
		"unsubscribe to no address": func(c *Config) { c.Unsubscribe = "reviews" },
		"one click by no reader":    func(c *Config) { c.Unsubscribe = "https://example.com/unsubscribe" },
	} {
		cfg := good
		change(&cfg)
		var p config.Problems
		if cfg.Check(&p); (p.Err() == nil) != (name == "") {
			t.Errorf("%s: %v", name, p.Err())
		}
	}
	if _, err := NewProvider(newSMTP(t, good), EvidenceConfig{MTALog: t.TempDir() + "/none"}); err == nil {
		t.Error("a log that cannot be read is accepted")
	}
}

func TestServerURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[ServerURL]endpoint{
		"smtp://mail.example.com":                              {"smtp", "mail.example.com", "587", "", false, tlsMandatory},
		"smtp://svc@mail.example.com:2525/":                    {"smtp", "mail.example.com", "2525", "svc", false, tlsMandatory},
		"smtp://svc@example.com@mail.example.com":              {"smtp", "mail.example.com", "587", "svc@example.com", false, tlsMandatory},
		"smtp://svc%40example.com@mail.example.com:587":        {"smtp", "mail.example.com", "587", "svc@example.com", false, tlsMandatory},
		`smtp://EXAMPLE%5Csvc@mail.example.com`:                {"smtp", "mail.example.com", "587", `EXAMPLE\svc`, false, tlsMandatory},
		"smtp://svc@example.com;auth=XOAuth2@mail.example.com": {"smtp", "mail.example.com", "587", "svc@example.com", true, tlsMandatory},
		"SMTPS://mail.example.com":                             {"smtps", "mail.example.com", "465", "", false, tlsImplicit},
		"smtp+insecure://localhost":                            {"smtp+insecure", "localhost", "25", "", false, tlsNone},
		"smtps://[2001:db8::1]":                                {"smtps", "2001:db8::1", "465", "", false, tlsImplicit},
		"smtp+insecure://[::1]:1025":                           {"smtp+insecure", "::1", "1025", "", false, tlsNone},
	} {
		if what, _ := url.problem("", []string{"smtp", "smtps", "smtp+insecure"}); what != "" || url.endpoint() != want {
			t.Errorf("%s: %+v, want %+v; %s", url, url.endpoint(), want, what)
		}
	}
	for url, want := range map[ServerURL]endpoint{
		"imap://svc@example.com@imap.example.com": {"imap", "imap.example.com", "143", "svc@example.com", false, tlsMandatory},
		"imaps://u@imap.example.com":              {"imaps", "imap.example.com", "993", "u", false, tlsImplicit},
		"imap+insecure://u@127.0.0.1":             {"imap+insecure", "127.0.0.1", "143", "u", false, tlsNone},
		"inbox://127.0.0.1":                       {"inbox", "127.0.0.1", "8025", "", false, tlsNone},
	} {
		var p config.Problems
		if (Mailbox{Server: url, Password: map[bool]secret.Value{true: secret.New("p")}[!url.IsInbox()]}).Check(&p); p.Err() != nil || url.endpoint() != want {
			t.Errorf("%s: %+v, want %+v; %v", url, url.endpoint(), want, p.Err())
		}
	}
}

// The problem is one sentence, and does not show a password.
func TestServerURLIsRefused(t *testing.T) {
	t.Parallel()
	for url, want := range map[ServerURL]string{
		"mail.example.com":                  "has no scheme",
		"svc:hunter2@mail.example.com:587":  "has no scheme",
		"https://mail.example.com":          "has an unknown scheme",
		"imap://svc@mail.example.com":       "has an unknown scheme",
		"smtp://":                           "names no host",
		"smtp://svc@:587":                   "names no host",
		"smtp://mail.example.com:smtp":      "has a port that is not a number",
		"smtp://svc:hunter2/x@mail:587":     "has a port that is not a number",
		"smtp://mail.example.com:0":         "has a port that does not exist",
		"smtp://mail.example.com:65536":     "has a port that does not exist",
		"smtp://mail.example.com/hunter2":   "has more than an account, a host and a port",
		"smtp://mail.example.com?hunter2":   "has more than an account, a host and a port",
		"smtp://mail.example.com#hunter2":   "has more than an account, a host and a port",
		"smtp://mail.example.com?":          "has more than an account, a host and a port",
		"smtp://svc:hunter2@mail":           "holds a password: delete it, and set server's password",
		"smtp://svc:@mail":                  "holds a password",
		`smtp://EXAMPLE\svc@mail:587`:       "is not a URL",
		"smtp://a b@mail":                   "is not a URL",
		"smtp://a;AUTH=GSSAPI@mail":         "has an unknown way to sign in",
		"smtp://a;b@mail":                   "has an unknown way to sign in",
		"smtp://;AUTH=XOAUTH2@mail":         "names no account",
		"smtp://[::1":                       "is not a URL",
		"smtp+insecure://mail.example.com":  "is for a server on another host and without TLS",
		"smtp+insecure://192.0.2.1:25":      "is for a server on another host and without TLS",
		"smtp+insecure://127.0.0.1.example": "is for a server on another host and without TLS",
	} {
		what, hint := url.problem("server's password", []string{"smtp", "smtps", "smtp+insecure"})
		if got := what + ": " + hint; !strings.HasPrefix(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	for _, box := range []Mailbox{
		{Server: "imap://imap.example.com", Password: secret.New("p")}, {Server: "imap+insecure://u@imap.example.com", Password: secret.New("p")},
		{Server: "smtp://u@imap.example.com", Password: secret.New("p")}, {Server: "inbox://192.0.2.1"}, {Server: "imap://u@imap.example.com"},
	} {
		var p config.Problems
		if box.Check(&p); strings.Count(fmt.Sprint(p.Err()), ": ") != 2 {
			t.Errorf("%s: %v, want one problem", box.Server, p.Err())
		}
	}
}
