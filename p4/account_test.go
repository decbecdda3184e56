package p4

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	const noPermission, noFiles = "//depot/b/... - no permission for operation on file(s).\n", "//depot/b/... - no such file(s).\n"
	for name, tt := range map[string]struct {
		login, second     reply
		left              time.Duration
		unreadable, empty []string
		class             failure.Class
	}{
		"all is well":              {login: reply{Out: stat("User", "criticizer", "TicketExpiration", "43200")}, left: 12 * time.Hour},
		"a ticket without an end":  {login: reply{Out: stat("User", "criticizer")}},
		"an entry it may not read": {second: reply{Out: message(3, 6, noPermission), Exit: 1}, unreadable: []string{"//depot/b/..."}},
		"an entry that is hidden":  {second: reply{Out: message(2, 17, noFiles)}, empty: []string{"//depot/b/..."}},
		"an expired ticket": {
			login: reply{Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}, class: failure.AuthDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.replies["login -s"] = tt.login
			f.reply("files -m 1 //depot/a/...", stat("depotFile", "//depot/a/x"))
			f.replies["files -m 1 //depot/b/..."] = tt.second
			if tt.second.Out == nil {
				f.reply("files -m 1 //depot/b/...", stat("depotFile", "//depot/b/x"))
			}
			fetcher := f.fetcher(slog.New(slog.DiscardHandler), func(c *Config) { c.Allowed = []string{"//depot/a/...", "//depot/b/..."} })
			got, err := fetcher.Account(t.Context())
			if (err != nil) != (tt.class != "") || err != nil && failure.ClassOf(err) != tt.class {
				t.Fatalf("ended with %v, want class %q", err, tt.class)
			}
			if err == nil && (got.TicketLeft != tt.left || !slices.Equal(got.Unreadable, tt.unreadable) || !slices.Equal(got.Empty, tt.empty)) {
				t.Errorf("found %+v", got)
			}
		})
	}
}
