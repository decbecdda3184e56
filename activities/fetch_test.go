package activities_test

import (
	"context"
	"slices"
	"testing"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/review"
)

type oneChange struct{ change review.Change }

func (c oneChange) Fetch(context.Context, review.Changelist) (review.Change, error) {
	return c.change, nil
}

func (c oneChange) FetchShelf(context.Context, review.Changelist) (review.Change, error) {
	c.change.Shelved = true
	return c.change, nil
}

type oneOwner struct{}

func (oneOwner) Of([]review.File) []review.Recipient {
	return []review.Recipient{{User: "olga", Address: "olga@corp.test", Role: review.RoleOwner}}
}

// The author is a bot by user or by address.
func TestBotsAreKnownByNameAndAddress(t *testing.T) {
	t.Parallel()
	author := review.Recipient{User: "alice", Address: alice, Role: review.RoleAuthor}
	for pattern, want := range map[string]bool{"ALI*": true, "*@corp.test": true, "bob": false, "": false} {
		w := activitiestest.New()
		stage := &activities.Fetching{
			Changes:    oneChange{review.Change{Number: 4711, User: "alice", Recipients: []review.Recipient{author, {User: "bob", Role: review.RoleSubscriber}}}},
			Recipients: w, Raw: w.Artifacts(review.NamespaceRaw), Bots: []string{pattern},
		}
		result, err := stage.Fetch(t.Context(), activities.StageParams{Request: request})
		if err != nil || result.ByBot != want {
			t.Errorf("with bots %q the author is a bot: %v, %v; want %v", pattern, result.ByBot, err, want)
		}
	}
}

// Of a denied change, and of a shelf, only the author is notified (security 9.1.4).
func TestOwnersOfDeniedChangesAreLeftOut(t *testing.T) {
	t.Parallel()
	author := review.Recipient{User: "alice", Address: alice, Role: review.RoleAuthor}
	for _, tc := range []struct {
		name    string
		skipped review.SkipReason
		shelved bool
		want    []string
	}{
		{"a change that may be read", "", false, []string{"alice", "olga"}},
		{"a change that may not", review.SkipNotAllowed, false, []string{"alice"}},
		{"a shelf", "", true, []string{"alice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := activitiestest.New()
			stage := &activities.Fetching{
				Changes: oneChange{review.Change{
					Number: 4711, Recipients: []review.Recipient{author},
					Files: []review.File{{DepotPath: "//depot/a.go", Skipped: tc.skipped}},
				}},
				Recipients: w, Raw: w.Artifacts(review.NamespaceRaw), Owners: oneOwner{},
			}
			of := request
			of.Shelved = tc.shelved
			if _, err := stage.Fetch(t.Context(), activities.StageParams{Request: of}); err != nil {
				t.Fatal(err)
			}
			known, err := w.Recipients(t.Context(), 4711, 1)
			if err != nil {
				t.Fatal(err)
			}
			var users []string
			for _, r := range known {
				users = append(users, r.User)
			}
			if !slices.Equal(users, tc.want) {
				t.Errorf("notified: %v, want %v", users, tc.want)
			}
		})
	}
}
