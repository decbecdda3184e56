package p4

import (
	"context"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// maxWindow is the largest number of changelist numbers that [ChangeFetcher.Submitted]
// searches at a time. p4 changes -m would keep the newest changelists and hide the
// others.
const maxWindow = 1000

// Submitted lists, in ascending order, the changelists above after that have a
// file in the allow list. It searches the numbers up to upTo, which is at most the
// server's newest submitted changelist. A range that is over the account's limits is
// halved; if one number is over them, the error is TooLarge.
func (f *ChangeFetcher) Submitted(ctx context.Context, after review.Changelist) (list []review.Changelist, upTo review.Changelist, err error) {
	s, err := f.connect(ctx)
	if err != nil {
		return nil, after, err
	}
	newest, err := s.newest(ctx, "-s", "submitted")
	if err != nil || newest <= after {
		return nil, after, err
	}
	upTo = min(newest, after+maxWindow)
	for ; ; upTo = after + (upTo-after)/2 {
		list, err = s.submitted(ctx, f.cfg.Allowed, after+1, upTo)
		if failure.ClassOf(err) != failure.TooLarge || upTo == after+1 {
			break
		}
	}
	if err != nil {
		return nil, after, fmt.Errorf("list submitted changelists: %w", err)
	}
	return list, upTo, nil
}

// submitted lists the changelists from one number to another with a file in the trees.
func (s *server) submitted(ctx context.Context, trees []string, from, to review.Changelist) ([]review.Changelist, error) {
	c := command.Cmd{Name: "changes", Flags: []string{"-s", "submitted"}}
	for _, tree := range trees {
		c.Operands = append(c.Operands, fmt.Sprintf("%s@%d,@%d", tree, from, to))
	}
	records, err := s.Stats(ctx, c)
	var list []review.Changelist
	for _, rec := range records {
		list = append(list, review.Changelist(rec.Number("change")))
	}
	slices.Sort(list)
	return slices.Compact(list), err // a change may be in several trees
}

// Newest returns the server's newest submitted changelist, 0 if it has none.
func (f *ChangeFetcher) Newest(ctx context.Context) (review.Changelist, error) {
	s, err := f.connect(ctx)
	if err != nil {
		return 0, err
	}
	return s.newest(ctx, "-s", "submitted")
}

// newest returns the newest changelist that p4 changes lists with the flags, 0 if there is
// none.
func (s *server) newest(ctx context.Context, flags ...string) (newest review.Changelist, err error) {
	records, err := s.Stats(ctx, command.Cmd{Name: "changes", Flags: append(flags, "-m", "1")})
	if err != nil {
		return 0, fmt.Errorf("ask the p4 server for its newest changelist: %w", err)
	}
	for _, rec := range records {
		newest = max(newest, review.Changelist(rec.Number("change")))
	}
	return newest, nil
}
