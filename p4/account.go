package p4

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// An Account is what the server says of the account that reads.
type Account struct {
	// TicketLeft is how long its ticket is good for; 0 if it never expires, or if
	// the account needs none.
	TicketLeft time.Duration
	// Unreadable are the entries of the allow-list that it may not read, Empty
	// those under which it sees no file.
	Unreadable, Empty []string
}

// Account asks the server about the account, and for one file of each entry of
// the allow-list. Errors carry the class that a fetch would have met.
func (f *ChangeFetcher) Account(ctx context.Context) (Account, error) {
	s, err := connect(ctx, f.runner, f.cfg.Charset)
	if err != nil {
		return Account{}, err
	}
	logins, err := s.stats(ctx, command{name: "login", flags: []string{"-s"}})
	if err != nil {
		return Account{}, fmt.Errorf("ask the p4 server about the ticket: %w", err)
	}
	var a Account
	for _, rec := range logins {
		seconds := max(rec.number("TicketExpiration"), rec.number("Expiration"))
		a.TicketLeft = time.Duration(seconds) * time.Second
	}
	for _, entry := range f.cfg.Allowed {
		files, err := s.stats(ctx, command{name: "files", flags: []string{"-m", "1"}, operands: []string{entry}})
		switch {
		case failure.ClassOf(err) == failure.PermissionDenied:
			a.Unreadable = append(a.Unreadable, entry)
		case err != nil:
			return a, fmt.Errorf("ask the p4 server for a file of %s: %w", entry, err)
		case len(files) == 0:
			a.Empty = append(a.Empty, entry)
		}
	}
	return a, nil
}
