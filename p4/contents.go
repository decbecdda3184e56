package p4

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/selection"
)

// choose returns the files whose content is read, and sets Skipped of the others
// by their metadata. If the limits of a change do not admit all files, the most important
// ones are read.
func (x *fetch) choose() []*file {
	var candidates []*file
	kinds := make(map[*file]selection.Kind)
	for _, file := range x.files {
		byType, byPath := file.fileType.skip(), x.selection.ByPath(file.DepotPath).Reason
		if byType == review.SkipBinary && byPath == "" && !selection.IsBinary(file.DepotPath) {
			byType = review.SkipBinaryType
		}
		file.Skipped = cmp.Or(file.Skipped, actionSkip(file.Action), byType, byPath)
		if file.Skipped == "" && file.Size > x.cfg.MaxFileBytes {
			file.Skipped = review.SkipTooLarge
		}
		if file.Skipped == "" {
			candidates = append(candidates, file)
			kinds[file] = selection.KindOf(file.DepotPath)
		}
	}
	var total int64
	n := 0
	for _, file := range slices.SortedStableFunc(slices.Values(candidates), func(a, b *file) int { return cmp.Compare(kinds[a], kinds[b]) }) {
		if total+file.Size > x.cfg.limits.changeBytes || n == x.cfg.limits.files {
			file.Skipped = review.SkipOverLimit
			continue
		}
		total += file.Size
		n++
	}
	return slices.DeleteFunc(candidates, func(f *file) bool { return f.Skipped != "" })
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

// revisions lists the revisions of which the content is needed.
func (f *file) revisions() []string {
	if f.base == "" {
		return []string{f.spec()}
	}
	all := []string{f.spec(), f.base}
	for _, s := range f.merged {
		if all = append(all, s.spec()); s.since > 0 {
			all = append(all, revision(s.path, s.since))
		}
	}
	return all
}

// manyDamaged is the number of revisions that look like an outage of the server's
// archives if not one revision of the change can be read.
const manyDamaged = 3

// findDamage reads content that differs from the server's digest or size once more, because
// it may have been damaged in transit. If it still differs, it sets the reason. The log has
// each damaged revision with the command that confirms the damage.
func (x *fetch) findDamage(ctx context.Context, files []*file, printed *printout) error {
	again, err := x.printAll(ctx, damagedIn(files, printed))
	if err != nil {
		return err
	}
	maps.Copy(printed.contents, again.contents)
	for _, spec := range damagedIn(files, printed) {
		c := printed.of(spec)
		c.missing = review.SkipDamaged
		if c.fileType.base != "text" { // p4 may print other bytes than the server digested
			c.missing = review.SkipUnreadable
		}
	}
	damaged := 0
	for _, c := range printed.contents {
		if c.missing == review.SkipDamaged {
			damaged++
			x.Log.LogAttrs(ctx, slog.LevelError, "file is damaged on the Perforce server", slog.Int64("changelist", int64(x.Number)),
				slog.String("revision", c.spec), slog.String("confirm", "p4 verify "+c.spec))
		}
	}
	if damaged >= manyDamaged && damaged == len(printed.contents) && !x.how.LastAttempt {
		return failure.Errorf(failure.UpstreamInternal, "the server cannot read any of %d archives: check that its depots are mounted", damaged)
	}
	return nil
}

// damagedIn lists the revisions whose content differs from the server's digest or size.
func damagedIn(files []*file, printed *printout) (specs []string) {
	for _, f := range files {
		for _, spec := range f.revisions() {
			digest := ""
			if spec == f.spec() {
				digest = f.Digest
			}
			if c := printed.of(spec); c.noText() == "" && !isIntact(c.data, digest, c.size, c.fileType) {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// compareAll sets Diff or Skipped of each file from the printed contents.
func (x *fetch) compareAll(ctx context.Context, printed *printout) error {
	left := x.cfg.limits.diffBytes
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
	var all []*content
	for _, spec := range f.revisions() {
		all = append(all, printed.of(spec))
	}
	f.charset, f.Charset = charsets(all, x.cfg.CharsetFallback)
	after, why := c.decode(f.charset)
	if why != "" {
		f.Skipped = why
		return nil
	}
	f.Open = review.OpenFindings(after, f.DepotPath, f.carried)
	before := f.baseText(printed)
	aligned := withEndsOf(before, after)
	switch {
	case f.base == "" || before == after:
	case aligned == after && withoutMark(before) != withoutMark(after):
		f.Skipped = review.SkipLineEnds
		return nil
	case withoutMark(aligned) != withoutMark(before):
		f.Notes = append(f.Notes, review.NoteLineEnds)
	}
	before = aligned
	merged, err := f.withMerged(ctx, printed, before, after)
	if err != nil {
		return err
	}
	f.Diff = Diff(merged, after, contextLines)
	switch {
	case f.Diff != "" && len(merged)+len(after) > review.MaxWhole:
		f.Diff, f.Skipped = "", review.SkipTooLarge // redaction reads whole texts
	case f.Diff != "":
		f.Whole = review.Compress(after)
	case f.isBranch() || before != after:
		f.Skipped = review.SkipIntegrated
	case f.fileType.isExecutable() && !printed.of(f.base).fileType.isExecutable():
		f.Skipped = review.SkipExecutable
	default:
		f.Skipped = review.SkipUnchanged
	}
	return nil
}

// charsets returns the charset of the contents of a file, the new one first, and as guess the
// one that the new content seems to have; guess is empty if the type or configured says it.
func charsets(all []*content, configured string) (charset, guess string) {
	var texts [][]byte
	for _, c := range all {
		if !isUTF16(c.data, c.fileType) {
			texts = append(texts, c.data)
		}
	}
	charset, isGuess := charsetOf(texts, configured)
	switch now := all[0]; {
	case now.fileType.base != "utf16" && isUTF16(now.data, now.fileType):
		return charset, "utf-16" // by the pattern of its bytes
	case isGuess:
		return charset, charset
	}
	return charset, ""
}

// baseText returns the text the file is compared with. It is empty if there is
// none: the file is new, or was not a text before. It is empty, too, if the revision is
// missing, which is noted: purged, obliterated, damaged or too large.
func (f *file) baseText(printed *printout) string {
	if f.base == "" {
		return ""
	}
	c := printed.of(f.base)
	text, why := c.decode(f.charset)
	if c.missing != "" || why == review.SkipNotDecodable {
		f.Notes = append(f.Notes, review.NoteNoBase(why))
	}
	return text
}

// noText returns the reason why a revision has no text: it is missing, or has another type.
func (c *content) noText() review.SkipReason {
	return cmp.Or(c.missing, actionSkip(c.action), c.fileType.skip())
}

// decode returns a printed content as text, or the reason why there is none.
func (c *content) decode(charset string) (string, review.SkipReason) {
	if why := c.noText(); why != "" {
		return "", why
	}
	text, ok := toText(c.data, c.fileType, charset)
	if !ok {
		return "", review.SkipNotDecodable
	}
	return c.fileType.collapse(text), ""
}
