package p4

import (
	"log/slog"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
)

// A ping asks anew each time, and something that needs the ticket.
func TestPing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key   string
		reply reply
		want  failure.Class
	}{
		"the server answers": {"changes -m 1", reply{Out: stat("change", "40")}, ""},
		"it is down":         {"info -s", reply{Stderr: "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n", Exit: 1}, failure.NetworkUnreachable},
		"the ticket has expired": {
			"changes -m 1", reply{Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}, failure.AuthDenied,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.replies[tt.key] = tt.reply
			fetcher := f.fetcher(slog.New(slog.DiscardHandler), nil)
			for range 2 {
				err := fetcher.Ping(t.Context())
				if (err != nil) != (tt.want != "") || err != nil && failure.ClassOf(err) != tt.want {
					t.Errorf("ping ended with %v, want class %q", err, tt.want)
				}
			}
			if calls := f.calls(); len(calls) < 2 {
				t.Errorf("%d calls of p4 for two pings", len(calls))
			}
		})
	}
}
