package p4

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	const noPermission, noFiles = "//depot/b/... - no permission for operation on file(s).\n", "//depot/b/... - no such file(s).\n"
	for name, tt := range map[string]struct {
		login, second reply
		left          time.Duration
		print         reply
		unreadable    []Unreadable
		empty         []string
		class         failure.Class
	}{
		"a valid ticket":              {login: reply{Out: stat("User", "criticizer", "TicketExpiration", "43200")}, left: 12 * time.Hour},
		"a ticket that never expires": {login: reply{Out: stat("User", "criticizer")}},
		"an entry without any right":  {second: reply{Out: message(3, 6, noPermission), Exit: 1}, unreadable: []Unreadable{{"//depot/b/...", "the permission list"}}},
		"a protected entry":           {second: reply{Out: message(2, 17, "//depot/b/... - protected namespace - access denied.\n")}, unreadable: []Unreadable{{"//depot/b/...", "the permission list"}}},
		"list without read":           {print: reply{Out: message(2, 17, "//depot/b/x#3 - no permission for operation on file(s).\n")}, unreadable: []Unreadable{{"//depot/b/...", "the permission read, but not list"}}},
		"a damaged file": {
			print:      reply{Out: message(3, 33, "Librarian checkout depot/b/x failed.\n"), Exit: 1},
			unreadable: []Unreadable{{"//depot/b/...", "the server cannot read the archive of a file: have p4 verify run on it"}},
		},
		"a hidden entry": {second: reply{Out: message(2, 17, noFiles)}, empty: []string{"//depot/b/..."}},
		"an expired ticket": {
			login: reply{Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}, class: failure.AuthDenied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.replies["login -s"] = tt.login
			f.reply("files -e -m 1 //depot/a/...", stat("depotFile", "//depot/a/x", "rev", "1"))
			f.reply("print //depot/a/x#1", stat("depotFile", "//depot/a/x", "rev", "1"), chunk("x"), chunk(""))
			f.replies["files -e -m 1 //depot/b/..."], f.replies["print //depot/b/x#3"] = tt.second, tt.print
			if tt.second.Out == nil {
				f.reply("files -e -m 1 //depot/b/...", stat("depotFile", "//depot/b/x", "rev", "3"))
			}
			if tt.print.Out == nil {
				f.reply("print //depot/b/x#3", stat("depotFile", "//depot/b/x", "rev", "3"), chunk(strings.Repeat("x", 1<<20)), chunk(""))
			}
			f.reply("files -e -m 1 //depot/c/...", stat("depotFile", "//depot/c/x", "rev", "1"))
			f.reply("print //depot/c/x#1", stat("depotFile", "//depot/c/x", "rev", "1"), chunk(""))
			fetcher := f.fetcher(func(c *Config) { c.Allowed = []string{"//depot/a/...", "//depot/b/...", "//depot/c/..."} })
			got, err := fetcher.Account(t.Context())
			if (err != nil) != (tt.class != "") || err != nil && failure.ClassOf(err) != tt.class {
				t.Fatalf("ended with %v, want class %q", err, tt.class)
			}
			if err == nil && (!got.ListsAll || got.TicketLeft != tt.left || !slices.Equal(got.Unreadable, tt.unreadable) || !slices.Equal(got.Empty, tt.empty)) {
				t.Errorf("found %+v", got)
			}
		})
	}
}

// A ping runs a command that needs the ticket.
func TestPing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key   string
		reply reply
		want  failure.Class
	}{
		"the server answers":     {"changes -s submitted -m 1", reply{Out: stat("change", "40")}, ""},
		"the server is down":     {"info -s", reply{Stderr: "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n", Exit: 1}, failure.NetworkUnreachable},
		"the ticket has expired": {"changes -s submitted -m 1", reply{Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}, failure.AuthDenied},
	} {
		f := newFake(t)
		f.replies[tt.key] = tt.reply
		err := f.fetcher().Ping(t.Context())
		if (err != nil) != (tt.want != "") || err != nil && failure.ClassOf(err) != tt.want {
			t.Errorf("%s: ping ended with %v, want class %q", name, err, tt.want)
		}
	}
}
