package p4

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// findBases determines the revision that each file is compared with: the one
// before, or the one that it was moved or branched from.
func (x *fetch) findBases(ctx context.Context, wanted []*file) error {
	if err := x.findSources(ctx, wanted); err != nil {
		return err
	}
	x.dropUnreadableSources(ctx)
	if err := x.creditSources(ctx, wanted); err != nil {
		return err
	}
	for _, file := range wanted {
		switch {
		case file.hasPrevious():
			file.base = revision(file.path, file.previous())
		case file.source != "":
			file.base = revision(file.source, file.FromRevision)
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

// lacksSource reports whether the file is a copy whose source p4 describe did not
// report.
func (f *file) lacksSource() bool { return f.isCopy() && f.source == "" }

// findSources runs one p4 filelog for the sources that p4 describe does not report.
// If one file was integrated, it asks for all edited files, too: a file that was
// edited after its merge has the action edit. The files of a shelf have no history:
// only the sources in p4 describe are known.
func (x *fetch) findSources(ctx context.Context, files []*file) error {
	needed := func(f *file) bool {
		return f.lacksSource() || f.Action == review.ActionIntegrate && f.hasPrevious()
	}
	if x.Shelved || !slices.ContainsFunc(files, needed) {
		return nil
	}
	var paths, specs []string
	byPath := make(map[string]*file)
	for _, file := range files {
		if file.lacksSource() || file.hasPrevious() {
			paths, specs = append(paths, file.path), append(specs, file.spec())
			byPath[x.fold(file.path)] = file
		}
	}
	if err := x.guard(ctx, paths); err != nil {
		return err
	}
	records, err := x.stats(ctx, command{name: "filelog", flags: []string{"-m", "1"}, lines: specs})
	if err != nil {
		return err
	}
	for _, rec := range records {
		if file := byPath[x.fold(rec.fields["depotFile"])]; file != nil {
			file.addSources(rec.fields)
		}
	}
	return nil
}

// addSources adds the sources of a file's newest revision in p4 filelog.
func (f *file) addSources(fields map[string]string) {
	for i := range numbered(fields, "how0,") {
		index := "0," + strconv.Itoa(i)
		if strings.HasSuffix(fields["how"+index], " from") {
			f.addSource(fields["file"+index], fields["erev"+index])
			f.addSince(fields["file"+index], fields["srev"+index], fields["erev"+index])
		}
	}
}

// revisionNumber is the number of #3 or 3, and 0 of #none.
func revisionNumber(rev string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(rev, "#"))
	if err != nil {
		return 0
	}
	return n
}

// addSource records a revision that the file was moved, branched or integrated
// from, if rev is a revision. The first one is the source of a copy.
func (f *file) addSource(path, rev string) {
	n := revisionNumber(rev)
	if path == "" || n < 1 {
		return
	}
	if f.source == "" {
		f.source, f.FromPath, f.FromRevision = path, decodePath(path), n
	}
	if spec := revision(path, n); f.hasPrevious() && len(f.merged) < maxMerged && !slices.Contains(f.merged, spec) {
		f.merged = append(f.merged, spec)
	}
}

// addSince records that only the revisions of a source after srev were integrated.
func (f *file) addSince(path, srev, erev string) {
	since, last := revisionNumber(srev), revisionNumber(erev)
	if since < 1 || last < 1 {
		return
	}
	if f.since == nil {
		f.since = make(map[string]int)
	}
	f.since[revision(path, last)] = since
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
		return !selection.MayHoldSecrets(decodePath(path))
	}
	for _, file := range x.files {
		if file.source != "" && !mayRead(file.source) {
			file.source, file.FromPath, file.FromRevision = "", "", 0
		}
		file.merged = slices.DeleteFunc(file.merged, func(spec string) bool { return !mayRead(pathOf(spec)) })
	}
	_ = x.denied(ctx, denied) // logs the security event
}
