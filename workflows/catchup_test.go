package workflows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// A search is a run of CatchUp on a server with so many changelists.
type search struct {
	first    bool
	mark     review.Changelist
	newest   review.Changelist
	reviewed []review.Changelist
	fails    error // of the listing
}

// window is how many numbers this server lists at a time.
const window = 300

// run returns what was started, and the marks that were set.
func (s search) run(t *testing.T) (started, marks []review.Changelist, done CaughtUp, err error) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(&activities.Bookkeeper{})
	env.RegisterActivity(&activities.Fetcher{})
	env.RegisterWorkflow(ReviewChangelist)
	env.OnActivity(bookkeeper.FindMark, mock.Anything, "p4").Return(activities.SearchStart{First: s.first, After: s.mark}, nil)
	env.OnActivity(fetcher.ListSubmitted, mock.Anything, mock.Anything).Return(func(_ context.Context, from activities.SearchStart) (activities.Listing, error) {
		if from.First {
			return activities.Listing{UpTo: s.newest}, s.fails
		}
		found := activities.Listing{UpTo: max(from.After, min(s.newest, from.After+window))}
		for cl := from.After + 1; cl <= found.UpTo; cl++ {
			found.Changelists = append(found.Changelists, cl)
		}
		return found, s.fails
	})
	env.OnActivity(bookkeeper.WithoutReview, mock.Anything, mock.Anything).Return(func(_ context.Context, cls []review.Changelist) ([]review.Changelist, error) {
		return slices.DeleteFunc(cls, func(cl review.Changelist) bool { return slices.Contains(s.reviewed, cl) }), nil
	})
	env.OnActivity(bookkeeper.RaiseMark, mock.Anything, mock.Anything).Return(func(_ context.Context, p activities.MarkParams) error {
		marks = append(marks, p.UpTo)
		return nil
	})
	env.OnWorkflow(ReviewChangelist, mock.Anything, mock.Anything).Return(func(_ workflow.Context, req review.Request) (review.Result, error) {
		started = append(started, req.Changelist)
		return review.Result{}, nil
	})
	env.ExecuteWorkflow(CatchUp, "p4")
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&done)
	}
	return started, marks, done, err
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	numbers := func(from, to review.Changelist) (all []review.Changelist) {
		for cl := from; cl <= to; cl++ {
			all = append(all, cl)
		}
		return all
	}
	var listings []review.Changelist
	for round := range review.Changelist(catchUpRounds) {
		listings = append(listings, (round+1)*window)
	}
	tests := map[string]struct {
		search  search
		started int
		marks   []review.Changelist
	}{
		"the first run starts nothing":  {search{first: true, newest: 900}, 0, []review.Changelist{900}},
		"nothing is new":                {search{mark: 900, newest: 900}, 0, nil},
		"some have a review":            {search{mark: 900, newest: 905, reviewed: []review.Changelist{902, 904}}, 3, []review.Changelist{905}},
		"in several goes":               {search{mark: 0, newest: 400}, 400, []review.Changelist{300, 400}},
		"no more than one run's share":  {search{mark: 0, newest: 2000}, 600, []review.Changelist{300, 600}},
		"exactly one run's share":       {search{mark: 0, newest: 2000, reviewed: append(numbers(1, 50), numbers(301, 350)...)}, 500, []review.Changelist{300, 600}},
		"no more than so many listings": {search{mark: 0, newest: 7000, reviewed: numbers(1, 7000)}, 0, listings},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, marks, done, err := tt.search.run(t)
			if err != nil || len(started) != tt.started || done.Started != tt.started || !slices.Equal(marks, tt.marks) {
				t.Errorf("started %d (said %d), marks %v, %v; want %d, %v", len(started), done.Started, marks, err, tt.started, tt.marks)
			}
		})
	}
}

// A failed listing does not raise the mark.
func TestCatchUpKeepsItsMarkOnFailure(t *testing.T) {
	t.Parallel()
	_, marks, _, err := search{mark: 1, newest: 5, fails: errors.New("down")}.run(t)
	if err == nil || len(marks) != 0 {
		t.Errorf("marks %v, %v", marks, err)
	}
}
