package p4

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// Ping asks the server for its newest changelist, which needs a valid ticket.
// Errors have the class that a fetch would have.
func (f *ChangeFetcher) Ping(ctx context.Context) error {
	s, err := connect(ctx, f.runner, f.cfg.Charset)
	if err != nil {
		return err
	}
	if _, err := s.stats(ctx, command{name: "changes", flags: []string{"-m", "1"}}); err != nil {
		return fmt.Errorf("ask the p4 server for its newest changelist: %w", err)
	}
	return nil
}

// An Account is the state of the account that reads changelists.
type Account struct {
	// TicketLeft is the remaining life of the account's ticket; 0 if it does not
	// expire, or if the account needs none.
	TicketLeft time.Duration
	// Unreadable are the entries of the allow list that the account may not read,
	// Empty those in which it sees no file.
	Unreadable, Empty []string
	// ListsAll is set if the protections prove that the account may list all files.
	ListsAll bool
}

// Account asks the server for the account's ticket and protections, and for one file of each entry
// of the allow list. Errors have the class that a fetch would have.
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
	if a.ListsAll, err = s.listsAll(ctx); err != nil {
		return Account{}, fmt.Errorf("ask the p4 server about the protections: %w", err)
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
