package mail

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A passwordBackend is a mail server that requires a password.
type passwordBackend struct{ got chan string }

func (m passwordBackend) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m passwordBackend) AuthMechanisms() []string                    { return []string{"PLAIN", "LOGIN"} }
func (m passwordBackend) Mail(string, *smtp.MailOptions) error        { return nil }
func (m passwordBackend) Rcpt(string, *smtp.RcptOptions) error        { return nil }
func (m passwordBackend) Reset()                                      {}
func (m passwordBackend) Logout() error                               { return nil }

func (m passwordBackend) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	m.got <- string(b)
	return err
}

func (m passwordBackend) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != "criticizer" || password != testPassword {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// A tokenBackend requires an access token.
type tokenBackend struct {
	passwordBackend
	token string
}

func (m tokenBackend) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m tokenBackend) AuthMechanisms() []string                    { return []string{"XOAUTH2", "PLAIN"} }
func (m tokenBackend) Auth(string) (sasl.Server, error)            { return m, nil }

func (m tokenBackend) Next(response []byte) (challenge []byte, done bool, err error) {
	switch string(response) {
	case "user=criticizer\x01auth=Bearer " + m.token + "\x01\x01":
		return nil, true, nil
	case "": // the client has read the challenge
		return nil, true, smtp.ErrAuthFailed
	}
	return []byte(`{"status":"401","schemes":"bearer"}`), false, nil
}

func TestAccessToken(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	backend := tokenBackend{passwordBackend{make(chan string, 1)}, testPassword}
	url := serveTLS(t, backend, cert, "smtp").of("criticizer;AUTH=XOAUTH2")
	m := render(t, findingsReport())
	for token, class := range map[string]failure.Class{testPassword + " \r\n": "", "expired": failure.AuthDenied} {
		p := newSMTP(t, Config{From: testFrom, Server: url, RootCAs: pool, Password: secret.New(token)})
		if _, err := p.send(t.Context(), m); class == "" && err != nil || class != "" && failure.ClassOf(err) != class {
			t.Errorf("%v, want class %q", err, class)
		}
	}
}

func TestTLSAndSignIn(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	for _, scheme := range []string{"smtp", "smtps"} {
		backend := passwordBackend{make(chan string, 1)}
		cfg := Config{
			From: testFrom, Server: serveTLS(t, backend, cert, scheme).of("criticizer"), RootCAs: pool, Password: secret.New(testPassword),
		}
		m := render(t, findingsReport())
		if _, err := newSMTP(t, cfg).send(t.Context(), m); err != nil {
			t.Errorf("%s: %v", scheme, err)
		} else if got := <-backend.got; got != string(mime(t, m)) {
			t.Errorf("%s: the server got %q", scheme, got)
		}

		wrong := cfg
		wrong.Password = secret.New(rand.Text())
		_, err := newSMTP(t, wrong).send(t.Context(), m)
		checkError(t, err, failure.AuthDenied, "535 5.7.8")

		stranger := cfg
		stranger.RootCAs = x509.NewCertPool()
		_, err = newSMTP(t, stranger).send(t.Context(), m)
		checkError(t, err, failure.ConfigInvalid, "")
	}
}

// An attacker who removes STARTTLS from the server's offer, or answers it with a
// rejection, gets neither a password nor a message.
func TestMandatoryTLSNeverFallsBack(t *testing.T) {
	t.Parallel()
	const offered = "250-hello\r\n250-STARTTLS\r\n250 AUTH PLAIN"
	for name, tc := range map[string]struct {
		scheme  string
		replies map[string]string
		class   failure.Class
		code    string
	}{
		"not offered":           {"smtp", nil, failure.ConfigInvalid, ""},
		"refused for now":       {"smtp", map[string]string{"1 EHLO": offered, "1 STARTTLS": "454 4.7.0 not now"}, failure.UpstreamUnavailable, "454 4.7.0"},
		"refused":               {"smtp", map[string]string{"1 EHLO": offered, "1 STARTTLS": "502 5.5.1 what?"}, failure.ConfigInvalid, "502 5.5.1"},
		"accepted, not done":    {"smtp", map[string]string{"1 EHLO": offered, "1 STARTTLS": "220 go ahead\r\n250 in clear"}, failure.ConfigInvalid, ""},
		"not from the greeting": {"smtps", nil, failure.ConfigInvalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, tc.replies)
			cfg := plainConfig(server.addr)
			cfg.Server, cfg.Password = cfg.Server.as(tc.scheme).of("criticizer"), secret.New(testPassword)
			_, err := newSMTP(t, cfg).send(t.Context(), render(t, findingsReport()))
			checkError(t, err, tc.class, tc.code)
			if server.heard("AUTH")+server.heard("MAIL")+server.heard("DATA") > 0 {
				t.Errorf("the server got %q", server.conns)
			}
		})
	}
}

// A server with an old TLS version, or with the certificate of another, is rejected.
func TestTLSOfAnotherServer(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	for name, tc := range map[string]struct {
		host   string
		serves func(*tls.Config)
	}{
		"TLS 1.1":                     {"127.0.0.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }},
		"certificate of another host": {"localhost", func(*tls.Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serves := cert.Clone()
			tc.serves(serves)
			at := func(u ServerURL) ServerURL { return ServerURL(strings.Replace(string(u), "127.0.0.1", tc.host, 1)) }
			cfg := Config{
				From: testFrom, Server: at(serveTLS(t, passwordBackend{make(chan string, 1)}, serves, "smtp").of("criticizer")), RootCAs: pool,
				Password: secret.New(testPassword),
			}
			_, err := newSMTP(t, cfg).send(t.Context(), render(t, findingsReport()))
			checkError(t, err, failure.ConfigInvalid, "")
			box := Mailbox{Server: at(serveMailbox(t, serves).Server.as("imap")), RootCAs: pool, Password: secret.New(testPassword)}
			_, err = journal{box}.find(t.Context(), testRef())
			checkError(t, err, failure.ConfigInvalid, "")
		})
	}
}

// serveTLS serves backend until the test ends and returns its URL.
func serveTLS(t *testing.T, backend smtp.Backend, tlsConfig *tls.Config, scheme string) ServerURL {
	t.Helper()
	s := smtp.NewServer(backend)
	s.TLSConfig = tlsConfig
	s.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn)
	l := listen(t)
	url := ServerURL(scheme + "://" + l.Addr().String())
	if scheme == "smtps" {
		l = tls.NewListener(l, s.TLSConfig)
	}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = s.Close() })
	return url
}

// certificate returns one for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates}, pool
}
