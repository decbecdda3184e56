package p4

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// manyDamaged is the number of revisions that look like an outage of the server's
// archives if not one revision of the change can be read.
const manyDamaged = 3

// findDamage reads content that differs from the server's digest or size once more,
// because it may have been damaged in transit. If it still differs, it sets the reason.
// It reports damaged revisions to the administrator.
func (x *fetch) findDamage(ctx context.Context, files []*file, printed *printout) error {
	var suspects []string
	for _, c := range damagedIn(files, printed) {
		suspects = append(suspects, c.spec)
	}
	again, err := x.printAll(ctx, suspects)
	if err != nil {
		return err
	}
	maps.Copy(printed.contents, again.contents)
	for _, c := range damagedIn(files, printed) {
		c.missing = review.SkipDamaged
		if c.fileType.isConverted() {
			c.missing = review.SkipUnreadable
		}
	}
	return x.reportDamage(ctx, printed)
}

// damagedIn returns the contents that differ from the server's digest or size.
func damagedIn(files []*file, printed *printout) []*content {
	var found []*content
	for _, f := range files {
		for _, spec := range f.revisions() {
			digest := ""
			if spec == f.spec() {
				digest = f.Digest
			}
			c := printed.of(spec)
			if c.missing == "" && cmp.Or(actionSkip(c.action), c.fileType.skip()) == "" && !isIntact(c.data, digest, c.size, c.fileType) {
				found = append(found, c)
			}
		}
	}
	return found
}

// reportDamage logs each damaged revision once in the life of the state directory,
// with the command that confirms the damage.
func (x *fetch) reportDamage(ctx context.Context, printed *printout) error {
	damaged := 0
	for _, c := range printed.contents {
		if c.missing != review.SkipDamaged {
			continue
		}
		damaged++
		if x.damage.isNew(c.spec) {
			x.NewlyDamaged++
			x.lg.LogAttrs(ctx, slog.LevelError, "file is damaged on the Perforce server", slog.Int64("changelist", int64(x.Number)),
				slog.String("revision", c.spec), slog.String("confirm", "p4 verify "+c.spec))
		}
	}
	if damaged >= manyDamaged && damaged == len(printed.contents) && !x.how.LastAttempt {
		return failure.Errorf(failure.UpstreamInternal, "the server cannot read any of %d archives: check that its depots are mounted", damaged)
	}
	return nil
}

// A damageLog is the file of the damaged revisions that were reported, one per line.
type damageLog struct {
	path string
	mu   sync.Mutex
}

// isNew adds a revision, and reports whether it was added for the first time. If the
// file cannot be written, a revision is reported more than once.
func (d *damageLog) isNew(spec string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, _ := os.ReadFile(d.path) // missing before the first damage
	if slices.Contains(strings.Split(string(known), "\n"), spec) {
		return false
	}
	if file, err := os.OpenFile(d.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(file, spec)
		_ = file.Close()
	}
	return true
}
