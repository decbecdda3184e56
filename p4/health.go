package p4

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
)

// Ping asks the server for its newest changelist, which needs a valid ticket.
// Errors have the class that a fetch would have.
func (f *ChangeFetcher) Ping(ctx context.Context) error {
	_, err := f.Newest(ctx)
	return err
}

// An Account is the state of the account that reads changelists.
type Account struct {
	// TicketLeft is the remaining life of the account's ticket; 0 if it does not
	// expire, or if the account needs none.
	TicketLeft time.Duration
	// Unreadable are the entries of the allow list in which a file could not be printed.
	// Empty are the entries in which the account sees no file.
	Unreadable []Unreadable
	Empty      []string
	// ListsAll is set if the protections prove that the account may list all files.
	ListsAll bool
}

// An Unreadable is an entry of the allow list, and what the account lacks there.
type Unreadable struct{ Entry, Lacks string }

// Account asks the server for the account's ticket and protections, and prints one file
// of each entry of the allow list: the permission list does not include the permission
// read. Errors have the class that a fetch would have.
func (f *ChangeFetcher) Account(ctx context.Context) (Account, error) {
	s, err := f.connect(ctx)
	if err != nil {
		return Account{}, err
	}
	logins, err := s.Stats(ctx, command.Cmd{Name: "login", Flags: []string{"-s"}})
	if err != nil {
		return Account{}, fmt.Errorf("ask the p4 server about the ticket: %w", err)
	}
	var a Account
	for _, rec := range logins {
		seconds := max(rec.Number("TicketExpiration"), rec.Number("Expiration"))
		a.TicketLeft = time.Duration(seconds) * time.Second
	}
	if a.ListsAll, err = s.listsAll(ctx); err != nil {
		return Account{}, fmt.Errorf("ask the p4 server about the protections: %w", err)
	}
	for _, entry := range f.cfg.Allowed {
		isEmpty, lacks, err := s.tryPrint(ctx, entry)
		switch {
		case err != nil:
			return a, fmt.Errorf("ask the p4 server for a file of %s: %w", entry, err)
		case lacks != "":
			a.Unreadable = append(a.Unreadable, Unreadable{entry, lacks})
		case isEmpty:
			a.Empty = append(a.Empty, entry)
		}
	}
	return a, nil
}

// errPrinted ends a print at the first bytes.
var errPrinted = errors.New("the file is readable")

// tryPrint prints the beginning of one file of an entry. It returns what the account
// lacks, as the server names it in warnings, too; isEmpty is set if it sees no file.
func (s *server) tryPrint(ctx context.Context, entry string) (isEmpty bool, lacks string, err error) {
	var spec string
	try := func(lacked string, c command.Cmd) error {
		return s.Run(ctx, c, func(rec command.Record) error {
			switch m := rec.Message(); {
			case rec.Code == "stat" && spec == "":
				spec = revision(rec.Fields["depotFile"], rec.Number("rev"))
			case rec.IsContent():
				return errPrinted
			case rec.Code != "error":
			case m.Class == failure.PermissionDenied:
				lacks = lacked
			case m.Skip != "" && m.Class != failure.NotFound:
				lacks = m.Text
			default:
				return rec.Err()
			}
			return nil
		})
	}
	err = try("the permission list", command.Cmd{Name: "files", Flags: []string{"-e", "-m", "1"}, Operands: []string{entry}})
	if err != nil || spec == "" || lacks != "" {
		return spec == "", lacks, err
	}
	err = try("the permission read, but not list", command.Cmd{Name: "print", Operands: []string{spec}})
	if errors.Is(err, errPrinted) {
		err = nil
	}
	return false, lacks, err
}
