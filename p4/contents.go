package p4

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// readContents gives every file its diff, or the reason why it has none.
func (x *fetch) readContents(ctx context.Context) error {
	wanted := x.choose()
	if err := x.findBases(ctx, wanted); err != nil {
		return err
	}
	var paths, specs []string
	for _, file := range wanted {
		for _, spec := range file.revisions() {
			paths, specs = append(paths, pathOf(spec)), append(specs, spec)
		}
	}
	if err := x.guard(ctx, paths); err != nil {
		return err
	}
	printed, err := x.printAll(ctx, specs)
	if err != nil {
		return err
	}
	room := x.cfg.MaxDiffBytes
	for i, file := range x.files {
		if err := cmp.Or(ctx.Err(), x.compare(file, printed)); err != nil {
			return fmt.Errorf("compare file %d of the changelist: %w", i+1, err)
		}
		// A diff shows what was there before, too, however small the new text is.
		if room -= int64(len(file.Diff)); room < 0 && file.Diff != "" {
			room += int64(len(file.Diff))
			file.Diff, file.Skipped = "", review.SkipOverLimit
		}
	}
	return nil
}

// printAll reads revisions: those that are shelved by a print of their own, for
// p4 announces a shelved file by the number of the revision it is based on.
func (x *fetch) printAll(ctx context.Context, specs []string) (*printout, error) {
	var shelved, submitted []string
	for _, spec := range specs {
		if strings.Contains(spec, "@=") {
			shelved = append(shelved, spec)
		} else {
			submitted = append(submitted, spec)
		}
	}
	printed, err := x.print(ctx, submitted, 0, x.cfg.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	shelf, err := x.print(ctx, shelved, x.Number, x.cfg.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	maps.Copy(printed.contents, shelf.contents)
	return printed, nil
}

// choose returns the files whose content is to be read and skips the others,
// as far as their metadata says. What is skipped already stays so. Where the
// limits have no room for all files, the most important ones are read.
func (x *fetch) choose() []*file {
	var candidates []*file
	for _, file := range x.files {
		file.Skipped = cmp.Or(file.Skipped, file.whyNotRead(), x.selection.ByPath(file.DepotPath).Reason)
		if file.Skipped == "" && file.Size > x.cfg.MaxFileBytes {
			file.Skipped = review.SkipTooLarge
		}
		if file.Skipped == "" {
			candidates = append(candidates, file)
		}
	}
	x.keepLimits(candidates)
	return slices.DeleteFunc(candidates, func(f *file) bool { return f.Skipped != "" })
}

// keepLimits skips the files for which a change's limits have no room.
func (x *fetch) keepLimits(candidates []*file) {
	kinds := make(map[*file]selection.Kind, len(candidates))
	for _, file := range candidates {
		kinds[file] = selection.KindOf(file.DepotPath)
	}
	byKind := slices.SortedStableFunc(slices.Values(candidates), func(a, b *file) int { return cmp.Compare(kinds[a], kinds[b]) })
	var total int64
	n := 0
	for _, file := range byKind {
		if total+file.Size > x.cfg.MaxChangeBytes || n == x.cfg.MaxFiles {
			file.Skipped = review.SkipOverLimit
			continue
		}
		total += file.Size
		n++
	}
}

// revisions lists the revisions of which the content is needed.
func (f *file) revisions() []string {
	if f.base == "" {
		return []string{f.spec()}
	}
	return append([]string{f.spec(), f.base}, f.merged...)
}

// whyNotRead returns the reason that follows from what was done to the file, or
// from its type.
func (f *file) whyNotRead() review.SkipReason {
	return cmp.Or(whyGone(f.Action), f.fileType.skip())
}

// whyGone says why a revision made by the action has no content.
func whyGone(action review.Action) review.SkipReason {
	switch action {
	case review.ActionDelete, review.ActionMoveDelete:
		return review.SkipDeleted
	case review.ActionPurge, review.ActionArchive:
		return review.SkipPurged
	}
	return ""
}

// compare fills in Diff or Skipped from what was printed, unless the file was
// not to be read.
func (x *fetch) compare(f *file, printed *printout) error {
	if f.Skipped != "" {
		return nil
	}
	after, err := f.text(printed.of(f.spec()), f.Digest)
	if err != nil || f.Skipped != "" {
		return err
	}
	before, err := f.baseText(printed)
	if err != nil || f.Skipped != "" {
		return err
	}
	if f.Skipped = x.selection.ByContent(f.DepotPath, before, after); f.Skipped != "" {
		return nil
	}
	f.Diff = unified(f.withMerged(printed, before, after), after, x.cfg.ContextLines, headingsOf(f.DepotPath))
	if f.Diff == "" {
		f.Skipped = f.whyNothing(before == after)
	}
	return nil
}

// whyNothing says why there is nothing to review in a file.
func (f *file) whyNothing(unchanged bool) review.SkipReason {
	copied := f.isCopy() && f.Action != review.ActionMoveAdd && f.base != ""
	if copied || !unchanged {
		return review.SkipIntegrated
	}
	return review.SkipUnchanged
}

// baseText returns the text the file is compared with. It is empty if there is
// none: the file is new, was no text before, or its source cannot be read.
func (f *file) baseText(printed *printout) (string, error) {
	if f.base == "" {
		return "", nil
	}
	c := printed.of(f.base)
	switch {
	case c.missing != "" && !f.hasPrevious():
		return "", nil
	case c.missing == "" && cmp.Or(whyGone(c.action), c.fileType.skip()) != "":
		return "", nil
	}
	return f.text(c, "")
}

// text returns a printed content as text, or sets Skipped. Content that is not
// what the server says it is was damaged or cut off on its way.
func (f *file) text(c *content, digest string) (string, error) {
	text, isText := toText(c.data)
	switch {
	case c.missing != "":
		f.Skipped = c.missing
	case isIntact(c.data, digest, c.size, c.fileType):
		if isText {
			return c.fileType.collapse(text), nil
		}
		f.Skipped = review.SkipNotDecodable
	case c.fileType.isConverted():
		f.Skipped = review.SkipUnreadable
	default:
		return "", failure.Errorf(failure.UpstreamInternal, "p4 print gave other content than the server has on record: if that stays so, have p4 verify run on it")
	}
	return "", nil
}
