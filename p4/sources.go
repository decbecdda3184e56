package p4

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// findBases settles what each of the wanted files is compared with: its revision
// before, or what it was moved or branched from.
func (x *fetch) findBases(ctx context.Context, wanted []*file) error {
	if err := x.askSources(ctx, wanted); err != nil {
		return err
	}
	x.dropUnreadableSources(ctx)
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

// hasPrevious reports whether the change was made to the revision before.
func (f *file) hasPrevious() bool {
	return f.previous() > 0 && (f.Action == review.ActionEdit || f.Action == review.ActionIntegrate)
}

// isCopy reports whether the file came into being from another one.
func (f *file) isCopy() bool {
	switch f.Action {
	case review.ActionBranch, review.ActionImport, review.ActionMoveAdd:
		return true
	}
	return f.Action == review.ActionIntegrate && f.previous() == 0
}

// isMerge reports whether the server says that something was integrated into
// the revision before.
func (f *file) isMerge() bool {
	return f.Action == review.ActionIntegrate && f.hasPrevious()
}

// lacksSource reports whether p4 describe did not tell what the file is a copy of.
func (f *file) lacksSource() bool { return f.isCopy() && f.source == "" }

// askSources asks for the sources that p4 describe does not tell. A copy may
// have none that is known, or that the account may see. If anything of the
// change was integrated, all files are asked about that may have been: one that
// was edited after its merge counts as an edit. Of a shelf only the sources are
// known that p4 describe tells: its files have no history yet.
func (x *fetch) askSources(ctx context.Context, files []*file) error {
	if x.Shelved || !slices.ContainsFunc(files, func(f *file) bool { return f.lacksSource() || f.isMerge() }) {
		return nil
	}
	var paths, specs []string
	asked := make(map[string]*file)
	for _, file := range files {
		if file.lacksSource() || file.hasPrevious() {
			paths, specs = append(paths, file.path), append(specs, file.spec())
			asked[x.fold(file.path)] = file
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
		if file := asked[x.fold(rec.fields["depotFile"])]; file != nil {
			file.readSources(rec.fields)
		}
	}
	return nil
}

// readSources reads the integrations of a file's newest revision.
func (f *file) readSources(fields map[string]string) {
	for i := range numbered(fields, "how0,") {
		index := "0," + strconv.Itoa(i)
		if strings.HasSuffix(fields["how"+index], " from") {
			f.addSource(fields["file"+index], fields["erev"+index])
		}
	}
}

// addSource notes a revision that the file was moved, branched or integrated
// from, if rev is a revision. Of a copy the first counts.
func (f *file) addSource(path, rev string) {
	n, err := strconv.Atoi(strings.TrimPrefix(rev, "#"))
	if path == "" || err != nil || n < 1 {
		return
	}
	if f.source == "" {
		f.source, f.FromPath, f.FromRevision = path, decodePath(path), n
	}
	if spec := revision(path, n); f.hasPrevious() && len(f.merged) < maxMerged && !slices.Contains(f.merged, spec) {
		f.merged = append(f.merged, spec)
	}
}

// dropUnreadableSources forgets sources that may not be read, or that may hold
// secrets: their files are shown as new. The change itself does not touch them.
func (x *fetch) dropUnreadableSources(ctx context.Context) {
	var denied []string
	mayRead := func(path string) bool {
		if x.list.Check(path, x.info.foldsCase()) != nil {
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
	_ = x.denied(ctx, denied) // for the security event
}
