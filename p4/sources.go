package p4

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// A source is a revision that a file was moved, branched or integrated from.
type source struct {
	path string // as the server spells it
	rev  int
	// since is the revision up to which the source had been integrated before; 0 if the whole
	// source counts, because reviews have read it or there is no such revision.
	since int
}

func (s source) spec() string { return revision(s.path, s.rev) }

// findBases determines the revision that each file is compared with: the one
// before, or the one that it was moved or branched from. It also finds the revisions
// that were integrated, whose text is not the author's.
func (x *fetch) findBases(ctx context.Context, chosen []*file) error {
	if err := x.findSources(ctx, chosen); err != nil {
		return err
	}
	x.dropUnreadableSources(ctx)
	if err := x.creditSources(ctx, chosen); err != nil {
		return err
	}
	for _, file := range chosen {
		switch {
		case file.hasPrevious():
			file.base = revision(file.path, file.previous())
		case file.source.path != "":
			file.base = file.source.spec()
		}
	}
	return nil
}

// hasPrevious reports whether the change modified the revision before.
func (f *file) hasPrevious() bool {
	return f.previous() > 0 && (f.Action == review.ActionEdit || f.Action == review.ActionIntegrate)
}

// isCopy reports whether the file was made from another one.
func (f *file) isCopy() bool {
	switch f.Action {
	case review.ActionBranch, review.ActionImport, review.ActionMoveAdd:
		return true
	}
	return f.Action == review.ActionIntegrate && f.previous() == 0
}

// isBranch reports whether the file was copied from another one, which still exists.
func (f *file) isBranch() bool {
	return f.isCopy() && f.Action != review.ActionMoveAdd && f.source.path != ""
}

// integrated lists the revisions whose content the file may have without an edit.
func (f *file) integrated() []source {
	if f.isCopy() && f.source.path != "" {
		return append([]source{f.source}, f.merged...)
	}
	return f.merged
}

// findSources runs one p4 filelog for the sources that p4 describe does not report.
// If one file was integrated, it asks for all edited files, too: a file that was
// edited after its merge has the action edit. The files of a shelf have no history:
// only the sources in p4 describe are known.
func (x *fetch) findSources(ctx context.Context, files []*file) error {
	lacksSource := func(f *file) bool { return f.isCopy() && f.source.path == "" }
	needsHistory := func(f *file) bool { return lacksSource(f) || f.Action == review.ActionIntegrate && f.hasPrevious() }
	if x.Shelved || !slices.ContainsFunc(files, needsHistory) {
		return nil
	}
	var specs []string
	byPath := make(map[string]*file)
	for _, file := range files {
		if lacksSource(file) || file.hasPrevious() {
			specs = append(specs, file.spec())
			byPath[x.fold(file.path)] = file
		}
	}
	if err := x.guard(ctx, specs); err != nil {
		return err
	}
	records, err := x.Stats(ctx, command.Cmd{Name: "filelog", Flags: []string{"-m", "1"}, Lines: specs})
	if err := x.orGap(review.GapSources, err); err != nil {
		return err
	}
	for _, rec := range records {
		file := byPath[x.fold(rec.Fields["depotFile"])]
		if file == nil {
			continue
		}
		for i := range numbered(rec.Fields, "how0,") {
			how, path := rec.Fields["how0,"+i], rec.Fields["file0,"+i]
			// A move may be merged from a branch. What the branch brought along did not move.
			if how == "moved from" || strings.HasSuffix(how, " from") && file.Action != review.ActionMoveAdd {
				file.addSource(path, x.path(path), rec.Fields["erev0,"+i], rec.Fields["srev0,"+i])
			}
		}
	}
	return nil
}

// revisionNumber is the number of #3, 3 or #1,#3, and 0 of #none.
func revisionNumber(rev string) int {
	n, err := strconv.Atoi(rev[strings.LastIndexByte(rev, '#')+1:])
	if err != nil {
		return 0
	}
	return n
}

// addSource records a revision that the file was moved, branched or integrated
// from, if rev is a revision; shown is its path for display. The first one is the source of
// a copy.
func (f *file) addSource(path, shown, rev, since string) {
	s := source{path, revisionNumber(rev), revisionNumber(since)}
	if path == "" || s.rev < 1 {
		return
	}
	if f.source.path == "" {
		f.source, f.FromPath, f.FromRevision = source{path, s.rev, 0}, shown, s.rev
	}
	if !f.hasPrevious() {
		return
	}
	// Only p4 filelog knows since of a revision that p4 describe names, too.
	i := slices.IndexFunc(f.merged, func(other source) bool { return other.path == path && other.rev == s.rev })
	switch {
	case i >= 0:
		f.merged[i].since = max(f.merged[i].since, s.since)
	case len(f.merged) < maxMerged:
		f.merged = append(f.merged, s)
	}
}

// dropUnreadableSources removes sources that are denied or may hold secrets: their
// files are shown as new. They do not deny the change, which does not touch them.
func (x *fetch) dropUnreadableSources(ctx context.Context) {
	var denied []string
	mayRead := func(path string) bool {
		if x.list.Check(path, x.info.CaseHandling) != nil {
			denied = append(denied, path)
			return false
		}
		return !selection.MayHoldSecrets(x.path(path))
	}
	for _, file := range x.files {
		if file.source.path != "" && !mayRead(file.source.path) {
			file.source, file.FromPath, file.FromRevision = source{}, "", 0
		}
		file.merged = slices.DeleteFunc(file.merged, func(s source) bool { return !mayRead(s.path) })
	}
	_ = x.denied(ctx, denied) // logs the security event
}

// maxRevisions is how many revisions of a source are looked up. Revisions beyond
// count as not reviewed.
const maxRevisions = 200

// A history says which revisions of files were reviewed.
type history struct {
	*fetch
	revisions map[string]map[int]revisionInfo // by folded path and number
	reviewed  map[review.Changelist]review.Credit
}

type revisionInfo struct {
	change review.Changelist
	moved  bool // the content is the content of another path
}

// creditSources removes the sources whose content no review has read, or whose path the
// configuration leaves unreviewed: integrating them would bring the content past the review.
// The others bring along the findings of their reviews. A move inside of the reviewed paths
// brings nothing new, unless a review of the source did not read it.
func (x *fetch) creditSources(ctx context.Context, files []*file) error {
	isOutside := func(path string) bool {
		return len(x.skip.Paths) > 0 && x.skip.paths.Check(path, x.info.CaseHandling) == nil || x.selection.ByPath(x.path(path)).Reason != ""
	}
	var specs []string
	for _, f := range files {
		for _, s := range f.integrated() {
			if !isOutside(s.path) {
				specs = append(specs, s.spec())
			}
		}
	}
	if err := x.guard(ctx, specs); err != nil {
		return err
	}
	known, err := x.historyOf(ctx, specs)
	if err != nil {
		return err
	}
	for _, f := range files {
		isCredited := func(s source) bool {
			findings, ok := known.credit(s, f.Action == review.ActionMoveAdd)
			if ok = ok && !isOutside(s.path); ok {
				f.carried = append(f.carried, findings...)
			}
			return ok
		}
		if f.isCopy() && f.source.path != "" && !isCredited(f.source) {
			f.source = source{}
		}
		var merged []source
		for _, s := range f.merged {
			if whole := (source{s.path, s.rev, 0}); isCredited(whole) {
				merged = append(merged, whole)
			} else if isCredited(s) {
				merged = append(merged, s)
			}
		}
		f.merged = merged
	}
	return nil
}

// historyOf runs one p4 filelog for the revisions that led to the given ones, and asks
// which of their changelists were reviewed. Revisions beyond the output of filelog count as
// not reviewed.
func (x *fetch) historyOf(ctx context.Context, specs []string) (history, error) {
	known := history{x, map[string]map[int]revisionInfo{}, nil}
	if specs == nil || x.cfg.Reviewed == nil && x.cfg.ReviewedUpTo == 0 {
		return known, nil
	}
	slices.Sort(specs)
	records, err := x.Stats(ctx, command.Cmd{Name: "filelog", Flags: []string{"-m", strconv.Itoa(maxRevisions)}, Lines: slices.Compact(specs)})
	if err == nil || failure.ClassOf(err) != failure.TooLarge { // else the histories of the first sources are known
		if err := x.orGap(review.GapSources, err); err != nil {
			return known, err
		}
	}
	var changes []review.Changelist
	for _, rec := range records {
		path := x.fold(rec.Fields["depotFile"])
		if known.revisions[path] == nil {
			known.revisions[path] = map[int]revisionInfo{}
		}
		for n := range numbered(rec.Fields, "rev") {
			change := review.Changelist(rec.Number("change" + n))
			known.revisions[path][rec.Number("rev"+n)] = revisionInfo{change, rec.Fields["action"+n] == string(review.ActionMoveAdd)}
			if change > x.cfg.ReviewedUpTo {
				changes = append(changes, change)
			}
		}
	}
	if changes == nil || x.cfg.Reviewed == nil {
		return known, nil
	}
	slices.Sort(changes)
	known.reviewed, err = x.cfg.Reviewed(ctx, slices.Compact(changes))
	return known, err
}

// credit returns the findings on all revisions of a source after since; ok is false
// if one of them was not reviewed. For a move it is enough that no review has failed to read
// one.
func (h history) credit(s source, isMove bool) (findings []review.CreditedFinding, ok bool) {
	for n := s.rev; n > s.since; n-- {
		r, ok := h.revisions[h.fold(s.path)][n]
		credit, known := h.reviewed[r.change]
		switch {
		case ok && r.change <= h.cfg.ReviewedUpTo:
			return findings, true // and so are all before
		case isMove && (!ok || !known):
			continue
		case !ok || r.moved && !isMove || !credit.Read:
			return nil, false
		}
		for _, f := range credit.Findings {
			f.Source = h.path(s.path)
			findings = append(findings, f)
		}
	}
	return findings, true
}
