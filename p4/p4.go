// Package p4 reads submitted and shelved changelists by running the p4 command. It
// enforces the allow list of depot paths, and no other package starts p4.
//
// [ChangeFetcher.Fetch] describes a changelist, checks its paths against the allow
// list (enforce.go), reads and compares the contents (contents.go, with
// sources.go, print.go, damage.go, charset.go, diff.go and integrate.go) and finds the
// recipients. command.go, process.go and marshal.go run p4; errors.go classifies its
// messages by the table messages.txt.
//
// The number of p4 processes does not depend on the size of a changelist:
// describe, protects, one print of all revisions that are compared, reviews and users;
// filelog twice if files were branched or integrated, jobs once if the changelist
// has jobs; files and print once for the files around the change (context.go); info once in the
// life of a [ChangeFetcher]. A shelf costs one more
// print, and so does each damaged revision. No command makes a server scan more than the changelist.
//
// The exit status of p4 does not tell success from failure: a missing file, or one
// that the account may not read, ends with status 0. A command has succeeded if it
// exited with 0, no record is an error, and the requested records arrived.
package p4

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review/outline"
	"github.com/criticizer/criticizer/review/selection"
)

// A ChangeFetcher reads changelists of one server. It is safe for concurrent use.
type ChangeFetcher struct {
	cfg       Config
	list      AllowList
	skip      skipper
	selection *selection.Policy
	runner    runner
	parser    *outline.Parser
	damage    damageLog
	window    atomic.Int64           // of the next search, 0 before the first
	server    atomic.Pointer[server] // nil before the first answer of the server
}

// New validates cfg, resolves the p4 command and makes the state directory. It
// does not connect to the server. Its errors have the class ConfigInvalid.
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
	if err := checkRules(list, cfg.Rules, ""); err != nil {
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
	return &ChangeFetcher{cfg: cfg, list: list, skip: skip, selection: policy, parser: outline.NewParser(), damage: damageLog{path: filepath.Join(cfg.StateDir, "damaged")}, runner: runner{
		lg: lg, path: path, dir: cfg.StateDir, port: cfg.Port, user: cfg.User, ticket: cfg.Ticket,
		timeout: cfg.Timeout, grace: cfg.killGrace, maxOutput: cfg.maxOutputBytes,
	}}, nil
}

// Info returns the server's description of itself. The first complete answer is kept.
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
	if s.info.CaseHandling != "" { // not hidden
		f.server.Store(s)
	}
	return s, nil
}
