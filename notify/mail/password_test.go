package mail

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// During a rotation the new password is tried first, and the old one where the
// server does not accept the new one yet (security 9.3.5). The log names which,
// and never contains a password (security 9.3.3).
func TestPasswordRotation(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	other := rand.Text()
	for name, tt := range map[string]struct {
		password, old string
		says          string
		class         failure.Class
	}{
		"new accepted":    {testPassword, other, "password=new", ""},
		"old accepted":    {other, testPassword, "password=old", ""},
		"none accepted":   {other, rand.Text(), "password=none", failure.AuthDenied},
		"no old password": {other, "", "", failure.AuthDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			box := passwordBackend{make(chan string, 2)}
			p := NewServer(slog.New(slog.NewTextHandler(&log, nil)), Config{
				From: testFrom, Server: serveTLS(t, box, cert, "smtp").of("criticizer"), RootCAs: pool,
				Password: secret.New(tt.password + "\n" + tt.old),
			})
			for range 2 {
				_, err := p.send(t.Context(), render(t, findingsReport()))
				if tt.class == "" && err != nil || tt.class != "" && failure.ClassOf(err) != tt.class {
					t.Errorf("send: %v, want class %q", err, tt.class)
				}
			}
			if tt.says != "" && strings.Count(log.String(), tt.says) != 1 {
				t.Errorf("want %q once in\n%s", tt.says, &log)
			}
			for _, password := range []string{testPassword, other} {
				if strings.Contains(log.String(), password) {
					t.Errorf("the log contains a password:\n%s", &log)
				}
			}
		})
	}
}

// The old password is tried only if the server rejects the sign-in.
func TestOldPasswordIsForRejectedSignInsOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := plainConfig(serveScript(t, map[string]string{"greeting": "421 4.3.2 later"}).addr)
	cfg.Server, cfg.Password = cfg.Server.of("ann"), secret.New(testPassword+"\n"+rand.Text())
	_, err := NewServer(slog.New(slog.NewTextHandler(&log, nil)), cfg).send(t.Context(), render(t, findingsReport()))
	checkError(t, err, failure.UpstreamUnavailable, "421 4.3.2")
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
}
