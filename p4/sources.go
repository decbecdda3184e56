package p4

import (
	"context"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// findBases settles what each of the wanted files is compared with: its revision
// before, or what it was moved or branched from.
func (x *fetch) findBases(ctx context.Context, wanted []*file) error {
	if err := x.askSources(ctx, wanted); err != nil {
		return err
	}
	x.dropDeniedSources(ctx)
	for _, file := range wanted {
		switch {
		case file.hasPrevious():
			file.base = revision(file.path, file.Revision-1)
		case file.source != "":
			file.base = revision(file.source, file.FromRevision)
		}
	}
	return nil
}

// hasPrevious reports whether the change was made to the revision before.
func (f *file) hasPrevious() bool {
	return f.Revision > 1 && (f.Action == review.ActionEdit || f.Action == review.ActionIntegrate)
}

// isCopy reports whether the file came into being from another one.
func (f *file) isCopy() bool {
	switch f.Action {
	case review.ActionBranch, review.ActionImport, review.ActionMoveAdd:
		return true
	}
	return f.Action == review.ActionIntegrate && f.Revision == 1
}

// askSources asks for the sources of copies that p4 describe does not tell. A
// copy may have none that is known, or that the account may see.
func (x *fetch) askSources(ctx context.Context, files []*file) error {
	var paths, specs []string
	copies := make(map[string]*file)
	for _, file := range files {
		if file.isCopy() && file.source == "" {
			paths, specs = append(paths, file.path), append(specs, file.spec())
			copies[x.fold(file.path)] = file
		}
	}
	if len(copies) == 0 {
		return nil
	}
	if err := x.guard(ctx, paths); err != nil {
		return err
	}
	records, err := x.stats(ctx, command{name: "filelog", flags: []string{"-m", "1"}, lines: specs})
	if err != nil {
		return err
	}
	for _, rec := range records {
		if file := copies[x.fold(rec.fields["depotFile"])]; file != nil {
			file.readSource(rec.fields)
		}
	}
	return nil
}

// readSource reads the integrations of a file's newest revision, of which the
// first that brought something in counts.
func (f *file) readSource(fields map[string]string) {
	for i := range numbered(fields, "how0,") {
		index := "0," + strconv.Itoa(i)
		if strings.HasSuffix(fields["how"+index], " from") {
			f.setSource(fields["file"+index], fields["erev"+index])
			return
		}
	}
}

// setSource notes what the file was moved or branched from, if rev is a revision.
func (f *file) setSource(path, rev string) {
	n, err := strconv.Atoi(strings.TrimPrefix(rev, "#"))
	if path == "" || err != nil || n < 1 {
		return
	}
	f.source, f.FromPath, f.FromRevision = path, decodePath(path), n
}

// dropDeniedSources forgets sources that may not be read: their files are shown
// as new. The change itself does not touch them.
func (x *fetch) dropDeniedSources(ctx context.Context) {
	var denied []string
	for _, file := range x.files {
		if file.source != "" && x.list.Check(file.source, x.info.foldsCase()) != nil {
			denied = append(denied, file.source)
			file.source, file.FromPath, file.FromRevision = "", "", 0
		}
	}
	_ = x.denied(ctx, denied) // for the security event
}
