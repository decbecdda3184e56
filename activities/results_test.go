package activities_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// An outage is several failures of several reviews and a share of the results, or half as
// many without any response, or rejected credentials of several reviews.
func TestOutageByResults(t *testing.T) {
	t.Parallel()
	one, two := []string{"a"}, []string{"a", "b"}
	for name, tt := range map[string]struct {
		results activities.Results
		want    string // the reason, empty if there is no outage
	}{
		"nothing":                    {activities.Results{}, ""},
		"enough":                     {activities.Results{Failed: 4, Succeeded: 4, Reviews: two, Last: failure.ServerBusy}, "4 of 8 results failed, of 2 reviews, the last SERVER_BUSY"},
		"one failure less":           {activities.Results{Failed: 3, Reviews: two}, ""},
		"one success more":           {activities.Results{Failed: 4, Succeeded: 5, Reviews: two}, ""},
		"one review":                 {activities.Results{Failed: 4, Reviews: one}, ""},
		"one review, silence":        {activities.Results{Failed: 2, NoAnswer: 2, Reviews: one, Last: failure.NetworkTimeout}, "2 of 2 results failed, of 1 reviews, the last NETWORK_TIMEOUT"},
		"silence once":               {activities.Results{Failed: 1, NoAnswer: 1, Reviews: one}, ""},
		"silence among successes":    {activities.Results{Failed: 2, NoAnswer: 2, Succeeded: 3, Reviews: one}, ""},
		"too many requests":          {activities.Results{Refused: 9, Reviews: two}, ""},
		"credentials of two":         {activities.Results{Failed: 1, Refused: 1, Succeeded: 3, Reviews: one, Denied: two, Last: failure.AuthDenied}, "4 of 7 results failed, of 3 reviews, the last AUTH_DENIED"},
		"credentials of one":         {activities.Results{Denied: one}, ""},
		"nothing, without any rules": {activities.Results{Rules: activities.BreakerRules{Window: 1}}, ""},
	} {
		if tt.results.Rules == (activities.BreakerRules{}) {
			tt.results.Rules = activities.BreakerRules{Failures: 4, Reviews: 2, Ratio: 0.5, Window: 20}
		}
		if reason, is := tt.results.Outage(); reason != tt.want || is != (tt.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, reason, is, tt.want)
		}
	}
}

func TestResultsAreAdded(t *testing.T) {
	t.Parallel()
	var sum activities.Results
	for i := range 25 {
		sum.Add(activities.Results{
			By: "w", Begun: 1, Succeeded: 2, Failed: 3, NoAnswer: 4, Refused: 5, Other: 6, Last: failure.ServerBusy,
			Reviews: []string{fmt.Sprint(i), "always"}, Denied: []string{fmt.Sprint(-i)},
		})
	}
	sum.Add(activities.Results{By: "x"})
	if len(sum.Reviews) != 20 || len(sum.Denied) != 20 || !slices.Contains(sum.Reviews, "always") {
		t.Errorf("reviews %q, denied %q, want the first 20, each once", sum.Reviews, sum.Denied)
	}
	sum.Reviews, sum.Denied = nil, nil
	want := activities.Results{By: "x", Begun: 25, Succeeded: 50, Failed: 75, NoAnswer: 100, Refused: 125, Other: 150, Last: failure.ServerBusy}
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("the sum is %+v, want %+v", sum, want)
	}
}
