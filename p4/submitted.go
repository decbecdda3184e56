package p4

import (
	"context"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/review"
)

// window is how many changelist numbers [ChangeFetcher.Submitted] searches at a
// time. p4 changes -m would keep the newest changelists and hide the others.
const window = 1000

// Submitted lists, in ascending order, the changelists above after that have a
// file in the allow list. It searches the numbers up to upTo, which is at most the
// server's newest submitted changelist.
func (f *ChangeFetcher) Submitted(ctx context.Context, after review.Changelist) (list []review.Changelist, upTo review.Changelist, err error) {
	newest, err := f.Newest(ctx)
	if err != nil || newest <= after {
		return nil, after, err
	}
	upTo = min(newest, after+window)
	var trees []string
	for _, path := range f.cfg.Allowed {
		trees = append(trees, fmt.Sprintf("%s@%d,@%d", path, after+1, upTo))
	}
	list, err = f.submitted(ctx, nil, trees)
	if err != nil {
		return nil, after, err
	}
	slices.Sort(list)
	return slices.Compact(list), upTo, nil // a change may be in several trees
}

// Newest returns the server's newest submitted changelist, 0 if it has none.
func (f *ChangeFetcher) Newest(ctx context.Context) (review.Changelist, error) {
	newest, err := f.submitted(ctx, []string{"-m", "1"}, nil)
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	return newest[0], nil
}

func (f *ChangeFetcher) submitted(ctx context.Context, flags, trees []string) ([]review.Changelist, error) {
	s, err := f.connected(ctx)
	if err != nil {
		return nil, err
	}
	records, err := s.stats(ctx, command{name: "changes", flags: append([]string{"-s", "submitted"}, flags...), operands: trees})
	if err != nil {
		return nil, fmt.Errorf("list submitted changelists: %w", err)
	}
	var list []review.Changelist
	for _, r := range records {
		list = append(list, review.Changelist(r.number("change")))
	}
	return list, nil
}
