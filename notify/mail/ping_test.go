package mail

import (
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// A ping meets what sending would meet, and sends nothing.
func TestPing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		replies  map[string]string
		class    failure.Class
		upstream string
	}{
		"the server answers":        {map[string]string{"RCPT": "drop", "DATA": "drop"}, "", ""},
		"it is busy":                {map[string]string{"greeting": "421 4.3.2"}, failure.UpstreamUnavailable, "421 4.3.2"},
		"it hangs up":               {map[string]string{"EHLO": "drop"}, failure.NetworkUnreachable, ""},
		"it does not take our name": {map[string]string{"MAIL": "451 4.7.1"}, failure.UpstreamUnavailable, "451 4.7.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveScript(t, tt.replies)
			err := newSMTP(t, plainConfig(server.addr)).Ping(t.Context())
			if tt.class == "" {
				if err != nil {
					t.Errorf("ping ended with %v", err)
				}
				return
			}
			checkError(t, err, tt.class, tt.upstream)
		})
	}
}
