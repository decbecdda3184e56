// Package p4 reads submitted and shelved changelists by running the p4 command. It is where
// the allow-list of depot paths is enforced (security 9.1), and the only place
// that starts p4 (security 9.2).
//
// A changelist costs the same few processes whatever its size: describe, one
// print of all revisions that are compared, reviews and users; filelog once if
// files were branched or integrated, jobs once if it has some; info once for the
// life of a [ChangeFetcher]. A shelf costs one print more. Nothing is asked that makes a server look at more
// than the changelist.
//
// Exit statuses do not tell success from failure: p4 reports a missing file, or
// one that may not be read, with status 0. A command has succeeded when it
// exited with 0, no record is an error, and the records asked for are there.
package p4

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/selection"
)

// A ChangeFetcher fetches changelists from one server. It may be used by
// several goroutines.
type ChangeFetcher struct {
	cfg       Config
	list      AllowList
	skip      skipper
	selection *selection.Policy
	runner    runner
	server    atomic.Pointer[server] // nil until the server has answered once
}

// New checks cfg, resolves the p4 command and makes the state directory. It
// does not talk to the server. Its errors are of class ConfigInvalid.
func New(lg *slog.Logger, cfg Config) (*ChangeFetcher, error) {
	f, err := configure(lg, cfg.withDefaults())
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "configure p4: %w", err)
	}
	return f, nil
}

func configure(lg *slog.Logger, cfg Config) (*ChangeFetcher, error) {
	list, err := NewAllowList(cfg.Allowed, cfg.Embargoed)
	if err != nil {
		return nil, err
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	policy, err := selection.New(cfg.Selection)
	if err != nil {
		return nil, err
	}
	skip, err := newSkipper(cfg.Skip)
	if err != nil {
		return nil, err
	}
	path, err := cfg.executable()
	if err != nil {
		return nil, err
	}
	if err := cfg.makeStateDir(); err != nil {
		return nil, err
	}
	return &ChangeFetcher{cfg: cfg, list: list, skip: skip, selection: policy, runner: runner{
		lg: lg, path: path, dir: cfg.StateDir, port: cfg.Port, user: cfg.User, ticket: cfg.Ticket,
		timeout: cfg.Timeout, grace: cfg.KillGrace, maxOutput: cfg.MaxOutputBytes,
	}}, nil
}

// Info returns what the server says of itself. It is asked once; the answer is
// kept. A failure is not.
func (f *ChangeFetcher) Info(ctx context.Context) (ServerInfo, error) {
	s, err := f.connected(ctx)
	if err != nil {
		return ServerInfo{}, err
	}
	return s.info, nil
}

func (f *ChangeFetcher) connected(ctx context.Context) (*server, error) {
	if s := f.server.Load(); s != nil {
		return s, nil
	}
	s, err := connect(ctx, f.runner, f.cfg.Charset)
	if err != nil {
		return nil, err
	}
	f.server.Store(s)
	return s, nil
}

// Fetch reads a submitted changelist. A file that cannot or should not be read
// is in the change with the reason in Skipped; a changelist without visible
// files has its reason in Empty.
//
// If a path is outside the allow-list nothing of the change is fetched: every
// file is skipped as not allowed, there is no description, and nobody but the
// author is told, for the names of files can be under embargo too (security 9.1).
// With [ReviewAllowedOnly] that holds if all paths are denied.
//
// Of a change that a skip rule names nothing but the description is read, and
// the rule is in SkippedBy.
//
// Errors have a class and leave it to the caller to name the changelist. One that
// is not submitted is InputInvalid; one the server does not know is NotFound, or
// ReplicaBehind if the server knows none that is as new.
func (f *ChangeFetcher) Fetch(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.fetch(ctx, number, false)
}

// FetchShelf reads what is shelved in a pending changelist, as Fetch reads what
// was submitted, and compares it with the revisions it is based on. It belongs to
// its author, who alone is told. If nothing is shelved there any more the change
// is skipped: it was submitted meanwhile, or thrown away.
func (f *ChangeFetcher) FetchShelf(ctx context.Context, number review.Changelist) (review.Change, error) {
	return f.fetch(ctx, number, true)
}

func (f *ChangeFetcher) fetch(ctx context.Context, number review.Changelist, shelved bool) (review.Change, error) {
	if number < 1 {
		return review.Change{}, failure.Errorf(failure.InputInvalid, "changelist number %d is not positive", number)
	}
	s, err := f.connected(ctx)
	if err != nil {
		return review.Change{}, err
	}
	d, err := s.describe(ctx, number, shelved)
	if shelved && failure.ClassOf(err) == failure.NotFound {
		return review.Change{Number: number, Shelved: true, SkippedBy: review.SkipRuleGone}, nil
	}
	if err != nil {
		return review.Change{}, err
	}
	if rule := cmp.Or(d.SkippedBy, f.skip.why(d, s.info.foldsCase())); rule != "" {
		return review.Change{Number: number, User: d.User, Time: d.Time, Shelved: shelved, SkippedBy: rule}, nil
	}
	x := fetch{s, f.cfg, f.list, f.selection, d}
	change, subscribers := d.Change, number
	if shelved {
		subscribers = 0
	}
	if x.deny(ctx) {
		change.Description, change.Jobs, subscribers = "", nil, 0
	} else if err := x.readContents(ctx); err != nil {
		return review.Change{}, err
	} else if change.Jobs, err = s.withTexts(ctx, d.Jobs); err != nil {
		return review.Change{}, err
	}
	change.Files = make([]review.File, 0, len(x.files))
	for _, file := range x.files {
		change.Files = append(change.Files, file.File)
	}
	change.Recipients, change.Unresolved, err = s.recipients(ctx, d.user, subscribers)
	return change, err
}

// A fetch is one changelist being fetched.
type fetch struct {
	*server
	cfg       Config
	list      AllowList
	selection *selection.Policy
	description
}
