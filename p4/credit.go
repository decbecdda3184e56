package p4

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// maxRevisions is how many revisions of a source are looked up. Revisions beyond
// count as not reviewed.
const maxRevisions = 200

// A history holds the revisions of files, by folded path and number.
type history map[string]map[int]revisionInfo

type revisionInfo struct {
	change review.Changelist
	moved  bool // the content is that of another path
}

// creditSources removes the sources whose content no review has read: integrating them
// would bring the content past the review. The remaining sources are reviewed, or outside
// of the reviewed paths, which the report mentions.
func (x *fetch) creditSources(ctx context.Context, files []*file) error {
	var specs, paths []string
	for _, f := range files {
		for _, spec := range f.integrated() {
			if !x.isOutside(pathOf(spec)) {
				specs, paths = append(specs, spec), append(paths, pathOf(spec))
			}
		}
	}
	if err := x.guard(ctx, paths); err != nil {
		return err
	}
	known, err := x.revisionsOf(ctx, specs)
	if err != nil {
		return err
	}
	reviewed, err := x.reviewedOf(ctx, known)
	if err != nil {
		return err
	}
	for _, f := range files {
		whole := func(spec string) bool {
			isOutside := x.isOutside(pathOf(spec))
			f.outside = f.outside || isOutside
			return isOutside || x.isReviewed(spec, 0, known, reviewed)
		}
		if f.isBranch() && !whole(revision(f.source, f.FromRevision)) {
			f.source = ""
		}
		f.merged = slices.DeleteFunc(f.merged, func(spec string) bool {
			if whole(spec) {
				delete(f.since, spec)
				return false
			}
			return !x.isReviewed(spec, f.since[spec], known, reviewed)
		})
	}
	return nil
}

// isBranch reports whether the file was copied from another one, which still exists.
func (f *file) isBranch() bool {
	return f.isCopy() && f.Action != review.ActionMoveAdd && f.source != ""
}

// integrated lists the revisions whose content the file may have without an edit.
func (f *file) integrated() []string {
	if f.isBranch() {
		return append([]string{revision(f.source, f.FromRevision)}, f.merged...)
	}
	return f.merged
}

// isOutside reports whether the configuration leaves changes to the path unreviewed.
func (x *fetch) isOutside(path string) bool {
	return len(x.skip.Paths) > 0 && x.skip.paths.Check(path, x.info.CaseHandling) == nil || x.selection.ByPath(decodePath(path)).Reason != ""
}

// revisionsOf runs one p4 filelog for the revisions that led to the given ones. Those beyond
// its output count as not reviewed.
func (x *fetch) revisionsOf(ctx context.Context, specs []string) (history, error) {
	known := history{}
	if specs == nil || x.cfg.Reviewed == nil && x.cfg.ReviewedUpTo == 0 {
		return known, nil
	}
	slices.Sort(specs)
	records, err := x.stats(ctx, command{name: "filelog", flags: []string{"-m", strconv.Itoa(maxRevisions)}, lines: slices.Compact(specs)})
	for _, rec := range records {
		path := x.fold(rec.fields["depotFile"])
		if known[path] == nil {
			known[path] = map[int]revisionInfo{}
		}
		for i := range numbered(rec.fields, "rev") {
			n := strconv.Itoa(i)
			known[path][rec.number("rev"+n)] = revisionInfo{
				review.Changelist(rec.number("change" + n)), rec.fields["action"+n] == string(review.ActionMoveAdd),
			}
		}
	}
	if failure.ClassOf(err) == failure.TooLarge {
		err = nil
	}
	return known, err
}

// reviewedOf returns which changelists of the history were reviewed.
func (x *fetch) reviewedOf(ctx context.Context, known history) (map[review.Changelist]bool, error) {
	var changes []review.Changelist
	for _, revisions := range known {
		for _, r := range revisions {
			if r.change > x.cfg.ReviewedUpTo {
				changes = append(changes, r.change)
			}
		}
	}
	if changes == nil || x.cfg.Reviewed == nil {
		return nil, nil
	}
	slices.Sort(changes)
	return x.cfg.Reviewed(ctx, slices.Compact(changes))
}

// isReviewed reports whether all revisions after since, up to that of spec, were reviewed.
func (x *fetch) isReviewed(spec string, since int, known history, reviewed map[review.Changelist]bool) bool {
	path, number, _ := strings.Cut(spec, "#")
	last := revisionNumber(number)
	for n := last; n > since; n-- {
		r, ok := known[x.fold(path)][n]
		switch {
		case ok && r.change <= x.cfg.ReviewedUpTo:
			return true // and so are all before
		case !ok || r.moved || !reviewed[r.change]:
			return false
		}
	}
	return last > 0
}
