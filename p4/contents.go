package p4

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// readContents sets the diff of every file, or the reason why it has none.
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
	if err == nil {
		err = x.findDamage(ctx, wanted, printed)
	}
	if err != nil {
		return err
	}
	left := x.cfg.maxDiffBytes
	for i, file := range x.files {
		if err := cmp.Or(ctx.Err(), x.compare(ctx, file, printed)); err != nil {
			return fmt.Errorf("compare file %d of the changelist: %w", i+1, err)
		}
		// A diff holds the old text, too: it can be large if the new text is small.
		if size := int64(len(file.Diff)); size > left {
			file.Diff, file.Whole, file.Skipped = "", nil, review.SkipOverLimit
		} else {
			left -= size
		}
	}
	return nil
}

// printAll reads revisions. Shelved ones need a print of their own: p4 reports a
// shelved file under the number of the revision it is based on.
func (x *fetch) printAll(ctx context.Context, specs []string) (*printout, error) {
	var shelved, submitted []string
	for _, spec := range specs {
		if strings.Contains(spec, "@=") {
			shelved = append(shelved, spec)
		} else {
			submitted = append(submitted, spec)
		}
	}
	printed, err := x.print(ctx, submitted, 0)
	if err != nil {
		return nil, err
	}
	shelf, err := x.print(ctx, shelved, x.Number)
	if err != nil {
		return nil, err
	}
	maps.Copy(printed.contents, shelf.contents)
	return printed, nil
}

// choose returns the files whose content is read, and sets Skipped of the others
// by their metadata. If the limits do not admit all files, the most important ones
// are read.
func (x *fetch) choose() []*file {
	var candidates []*file
	for _, file := range x.files {
		file.Skipped = cmp.Or(file.Skipped, actionSkip(file.Action), file.fileType.skip(), x.selection.ByPath(file.DepotPath).Reason)
		if file.Skipped == "" && file.Size > x.cfg.MaxFileBytes {
			file.Skipped = review.SkipTooLarge
		}
		if file.Skipped == "" {
			candidates = append(candidates, file)
		}
	}
	x.applyLimits(candidates)
	return slices.DeleteFunc(candidates, func(f *file) bool { return f.Skipped != "" })
}

// applyLimits skips the files that exceed the limits of a change.
func (x *fetch) applyLimits(candidates []*file) {
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
	all := append([]string{f.spec(), f.base}, f.merged...)
	for _, spec := range f.merged {
		if since := f.since[spec]; since > 0 {
			all = append(all, revision(pathOf(spec), since))
		}
	}
	return all
}

// actionSkip returns the reason why a revision made by the action has no content.
func actionSkip(action review.Action) review.SkipReason {
	switch action {
	case review.ActionDelete, review.ActionMoveDelete:
		return review.SkipDeleted
	case review.ActionPurge, review.ActionArchive:
		return review.SkipPurged
	}
	return ""
}

// compare sets Diff or Skipped from the printed contents, unless the file was
// skipped before.
func (x *fetch) compare(ctx context.Context, f *file, printed *printout) error {
	if f.Skipped != "" {
		return nil
	}
	c := printed.of(f.spec())
	if c.missing == "" {
		f.SHA256 = fmt.Sprintf("%x", sha256.Sum256(c.data))
	}
	f.Charset = x.cfg.guessCharset(notUTF16(f.contents(printed)...))
	after := f.text(c)
	before := f.baseText(printed)
	if f.Skipped != "" {
		return nil
	}
	if f.Skipped = x.selection.ByContent(f.DepotPath, before, after); f.Skipped != "" {
		return nil
	}
	merged, err := f.withMerged(ctx, printed, before, after)
	if err != nil {
		return err
	}
	f.Diff = Diff(f.DepotPath, merged, after, x.cfg.ContextLines)
	switch {
	case f.Diff != "" && len(merged)+len(after) > review.MaxWhole:
		f.Diff, f.Skipped = "", review.SkipTooLarge // redaction reads whole texts
	case f.Diff != "":
		f.Whole = review.Compress(after)
	case f.outside:
		f.Skipped = review.SkipIntegratedOutside
	case f.isBranch() || before != after:
		f.Skipped = review.SkipIntegrated
	default:
		f.Skipped = review.SkipUnchanged
	}
	return nil
}

// contents are all revisions of the file that were printed.
func (f *file) contents(printed *printout) (all []*content) {
	for _, spec := range f.revisions() {
		all = append(all, printed.of(spec))
	}
	return all
}

// notUTF16 returns the bytes of the contents that are not in UTF-16.
func notUTF16(contents ...*content) (all [][]byte) {
	for _, c := range contents {
		if !isUTF16(c.data, c.fileType) {
			all = append(all, c.data)
		}
	}
	return all
}

// baseText returns the text the file is compared with. It is empty if there is
// none: the file is new, was not a text before, or its source cannot be read.
func (f *file) baseText(printed *printout) string {
	if f.base == "" {
		return ""
	}
	c := printed.of(f.base)
	switch {
	case c.missing != "" && !f.hasPrevious():
		return ""
	case c.missing == "" && cmp.Or(actionSkip(c.action), c.fileType.skip()) != "":
		return ""
	}
	return f.text(c)
}

// text returns a printed content as text, or sets Skipped.
func (f *file) text(c *content) string {
	text, ok := toText(c.data, c.fileType, f.Charset)
	switch {
	case c.missing != "":
		f.Skipped = cmp.Or(f.Skipped, c.missing)
	case !ok:
		f.Skipped = cmp.Or(f.Skipped, review.SkipNotDecodable)
	default:
		return c.fileType.collapse(text)
	}
	return ""
}
