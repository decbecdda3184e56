// Package p4 reads submitted and shelved changelists by running the p4 command. It
// is where the allow-list of depot paths is enforced (security 9.1), and the only
// place that starts p4 (security 9.2).
//
// [ChangeFetcher.Fetch] is the way through: describe, enforce, contents (with
// sources, print and diff), recipients, each a file. command, process and marshal
// are how p4 is run, errors what its messages mean.
//
// A changelist costs the same few processes whatever its size: describe, one
// print of all revisions that are compared, reviews and users; filelog once if
// files were branched or integrated, jobs once if it has some; info once for the
// life of a [ChangeFetcher]. A shelf costs one print more. Nothing is asked that
// makes a server look at more than the changelist.
//
// Exit statuses do not tell success from failure: p4 reports a missing file, or
// one that may not be read, with status 0. A command has succeeded when it
// exited with 0, no record is an error, and the records asked for are there.
package p4

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review/selection"
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
