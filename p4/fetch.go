// Package p4 reads submitted and shelved changelists by running the p4 command. It
// enforces the allow list of depot paths, and no other package starts p4.
//
// Read this file first: [ChangeFetcher.Read] makes a review.Change of a changelist. It
// describes it (describe.go), denies it if a path may not be read (deny.go, allowlist.go),
// finds the revisions to compare (sources.go), prints (print.go), decodes (text.go) and
// compares them (contents.go, merge.go, diff.go), adds what surrounds the change (jobs.go,
// teamrules.go, context.go) and finds the recipients (recipients.go).
// p4/internal/command runs p4 and classifies its messages.
//
// The number of p4 processes does not depend on the size of a changelist:
// info, describe, protects, one print of all revisions that are compared, reviews and users;
// filelog twice if files were branched or integrated, jobs once if the changelist
// has jobs; files and print once for the files around the change. A shelf costs one more
// print, and so do content that seems damaged and each revision at which the server ends a
// print; a server that fails to describe a changelist is asked up to three times, groups
// that own changed paths once a minute, and a replica twice for users it does not list.
package p4

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// A ChangeFetcher reads changelists of one server. It is safe for concurrent use.
type ChangeFetcher struct {
	cfg       Config
	list      AllowList
	owners    []owner
	authors   []authorRule
	groups    sync.Map // the cached members of groups in owners, by name
	skip      skipper
	selection *selection.Policy
	runner    command.Runner
}

// New validates cfg, resolves the p4 command and makes the state directory. It does not
// connect to the server. Its errors have the class ConfigInvalid and name all problems.
func New(lg *slog.Logger, cfg Config) (*ChangeFetcher, error) {
	l := cfg.limits
	cfg.limits = limits{cmp.Or(l.files, 2000), cmp.Or(l.changeBytes, 20e6), cmp.Or(l.diffBytes, 30e6), cmp.Or(l.outputBytes, 100e6), cmp.Or(l.killGrace, 5*time.Second)}
	err := config.Validate("p4", &cfg)
	list, errList := NewAllowList(cfg.Allowed, cfg.Embargoed)
	if errList == nil {
		errList = checkRules(list, cfg.Rules, "")
	}
	policy, errPolicy := selection.New(cfg.Selection)
	skip, errSkip := newSkipper(cfg.Skip)
	owners, errOwners := parseOwners(cfg.Owners)
	authors, errAuthors := parseAuthors(cfg.Authors)
	path, errPath := command.LookPath(cfg.Command)
	if err == nil {
		err = errors.Join(errList, errPolicy, errSkip, errOwners, errAuthors, errPath, command.MakeDir(cfg.StateDir))
	}
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "configure p4: %w", err)
	}
	return &ChangeFetcher{cfg: cfg, list: list, owners: owners, authors: authors, skip: skip, selection: policy, runner: command.Runner{
		Log: lg, Path: path, Dir: cfg.StateDir, Port: cfg.Port, User: cfg.User, Ticket: cfg.Ticket, Key: strings.ToUpper(cfg.Fingerprint),
		Timeout: cfg.Timeout, Grace: cfg.limits.killGrace, MaxOutput: cfg.limits.outputBytes,
	}}, nil
}

// Read reads a submitted changelist or a shelf. A file that is not read has the reason in
// Skipped; a changelist without visible files has the reason in Empty.
//
// If a path is denied by the allow list, nothing of the change is read: every file is
// skipped as not allowed, there is no description, and the author is the only recipient,
// because file names can be under embargo, too. The same holds if the change may have
// files that the account may not list, or has none that it may list. With
// [ReviewAllowedOnly] that holds only if all visible paths are denied.
//
// If a skip rule matches, only the description is read, and the rule is in SkippedBy.
//
// The files of a shelf are compared with the revisions they are based on, and the author
// is the only recipient. If the shelf is empty, gone or older than the trigger reported,
// the error is ReplicaBehind; if the server does not lag, or in the last attempt, a shelf
// that is gone is skipped: it was submitted or deleted. In the last attempt, files whose
// content a replica lacks are skipped, too.
//
// With an error, the change has the author alone, or nothing if Perforce did not name one.
//
// Errors have a class and do not name the changelist. For a changelist that the server
// does not know it is NotFound, or ReplicaBehind if all changelists that the server knows
// are older. For a pending changelist it is ReplicaBehind, or InputInvalid if the server
// does not lag.
func (f *ChangeFetcher) Read(ctx context.Context, number review.Changelist, how review.ReadOptions) (review.Change, error) {
	if number < 1 {
		return review.Change{}, failure.Errorf(failure.InputInvalid, "changelist number %d is not positive", number)
	}
	s, err := f.connect(ctx)
	if err != nil {
		return review.Change{}, err
	}
	d, err := s.describe(ctx, number, how)
	x := fetch{f, s, d, how}
	if err != nil {
		return x.authorOnly(ctx), err
	}
	if rule := cmp.Or(d.SkippedBy, f.skip.match(d, s.info.CaseHandling)); rule != "" {
		return review.Change{Number: number, User: d.User, Time: d.Time, Shelved: how.Shelved, SkippedBy: rule}, nil
	}
	if err := x.read(ctx); err != nil {
		return x.authorOnly(ctx), err
	}
	return x.Change, nil
}

// A fetch reads one changelist into its Change.
type fetch struct {
	*ChangeFetcher
	*server
	description
	how review.ReadOptions
}

// read reads the allowed parts of the changelist.
func (x *fetch) read(ctx context.Context) error {
	denied, err := x.deny(ctx)
	if err != nil {
		return err
	}
	if !denied {
		if err := x.readContents(ctx); err != nil {
			return err
		}
	}
	x.Files = make([]review.File, 0, len(x.files))
	for _, file := range x.files {
		x.Files = append(x.Files, file.File)
	}
	if denied {
		x.Description, x.Jobs = "", nil
		return x.readRecipients(ctx, true)
	}
	x.Jobs, err = x.withTexts(ctx, x.Jobs)
	if err := x.orGap(review.GapJobs, err); err != nil {
		return err
	}
	x.nameAuthor()
	x.Change.Rules, err = x.readRules(ctx)
	if err := x.orGap(review.GapRules, err); err != nil {
		return err
	}
	if err := x.orGap(review.GapContext, x.readContext(ctx)); err != nil {
		return err
	}
	return x.readRecipients(ctx, x.Shelved)
}

// readContents sets the diff of every file, or the reason why it has none.
func (x *fetch) readContents(ctx context.Context) error {
	chosen := x.choose()
	if err := x.findBases(ctx, chosen); err != nil {
		return err
	}
	var specs []string
	for _, file := range chosen {
		specs = append(specs, file.revisions()...)
	}
	if err := x.guard(ctx, specs); err != nil {
		return err
	}
	printed, err := x.printAll(ctx, specs)
	if err != nil {
		return err
	}
	if err := x.findDamage(ctx, chosen, printed); err != nil {
		return err
	}
	return x.compareAll(ctx, printed)
}

// orGap returns nil and records the gap if the review continues without what a command
// failed to read: another attempt would fail, too, and what is missing is not the change
// itself. Otherwise it returns err.
func (x *fetch) orGap(gap review.Gap, err error) error {
	e, _ := errors.AsType[*failure.Error](err)
	switch class := failure.ClassOf(err); {
	case err == nil, class == failure.AuthDenied, errors.Is(err, context.Canceled):
		return err
	case class == failure.UpstreamInternal && e != nil && e.Upstream != "": // the server cannot find it
	case class.Retryable() && !x.how.LastAttempt:
		return err
	}
	if !slices.Contains(x.Gaps, gap) {
		x.Gaps = append(x.Gaps, gap)
	}
	return nil
}
