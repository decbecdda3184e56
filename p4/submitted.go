package p4

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// maxWindow is the largest number of changelist numbers that [ChangeFetcher.Submitted]
// searches at a time. p4 changes -m would keep the newest changelists and hide the
// others.
const maxWindow = 1000

// Submitted lists, in ascending order, the changelists above after that have a
// file in the allow list. It searches the numbers up to upTo, which is at most the
// server's newest submitted changelist. A range that is over the account's limits is
// halved, and later ones grow again; if one number is over them, the error is TooLarge.
func (f *ChangeFetcher) Submitted(ctx context.Context, after review.Changelist) (list []review.Changelist, upTo review.Changelist, err error) {
	newest, err := f.Newest(ctx)
	if err != nil || newest <= after {
		return nil, after, err
	}
	window := min(cmp.Or(f.window.Load(), maxWindow), maxWindow)
	for {
		upTo = min(newest, after+review.Changelist(window))
		list, err = f.submitted(ctx, f.cfg.treesAt(after+1, upTo))
		if failure.ClassOf(err) != failure.TooLarge || upTo == after+1 {
			break
		}
		window = max(1, int64(upTo-after)/2)
		f.window.Store(window)
	}
	if err != nil {
		return nil, after, err
	}
	f.window.Store(2 * window)
	slices.Sort(list)
	return slices.Compact(list), upTo, nil // a change may be in several trees
}

// treesAt returns the allowed paths with a range of changelists.
func (c Config) treesAt(from, to review.Changelist) []string {
	var trees []string
	for _, path := range c.Allowed {
		trees = append(trees, fmt.Sprintf("%s@%d,@%d", path, from, to))
	}
	return trees
}

// Newest returns the server's newest submitted changelist, 0 if it has none.
func (f *ChangeFetcher) Newest(ctx context.Context) (review.Changelist, error) {
	s, err := f.connected(ctx)
	if err != nil {
		return 0, err
	}
	return s.newest(ctx, "-s", "submitted")
}

// newest returns the newest changelist that p4 changes lists with the flags, 0 if there is
// none.
func (s *server) newest(ctx context.Context, flags ...string) (newest review.Changelist, err error) {
	records, err := s.stats(ctx, command{name: "changes", flags: append(flags, "-m", "1")})
	if err != nil {
		return 0, fmt.Errorf("ask the p4 server for its newest changelist: %w", err)
	}
	for _, rec := range records {
		newest = max(newest, review.Changelist(rec.number("change")))
	}
	return newest, nil
}

func (f *ChangeFetcher) submitted(ctx context.Context, trees []string) ([]review.Changelist, error) {
	s, err := f.connected(ctx)
	if err != nil {
		return nil, err
	}
	records, err := s.stats(ctx, command{name: "changes", flags: []string{"-s", "submitted"}, operands: trees})
	if err != nil {
		return nil, fmt.Errorf("list submitted changelists: %w", err)
	}
	var list []review.Changelist
	for _, r := range records {
		list = append(list, review.Changelist(r.number("change")))
	}
	return list, nil
}
