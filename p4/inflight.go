package p4

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// InFlight says how many reviews of changes to which paths may be in flight at a
// time.
type InFlight []pathLimit

// A pathLimit is one entry.
type pathLimit struct {
	path    pathPattern
	reviews int
}

// NewInFlight reads entries such as "//depot/main/... 4": a path as [NewOwners] takes
// it, and behind it how many reviews. The error has class CONFIG_INVALID.
func NewInFlight(entries []string) (InFlight, error) {
	var limits InFlight
	for i, text := range entries {
		l, err := parseLimit(text)
		if _, twice := limits.Limits()[l.path.text]; err == nil && twice {
			err = errors.New("the path has an entry already")
		}
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "entry %d: %w: want //depot/path/... 4", i+1, err)
		}
		limits = append(limits, l)
	}
	return limits, nil
}

func parseLimit(text string) (pathLimit, error) {
	path, rest, err := parsePattern(text)
	if err != nil {
		return pathLimit{}, err
	}
	reviews, err := strconv.Atoi(strings.TrimSpace(rest))
	if err != nil || reviews < 1 {
		return pathLimit{}, fmt.Errorf("behind the path is %q, not how many reviews, 1 or more", strings.TrimSpace(rest))
	}
	return pathLimit{path, reviews}, nil
}

// Of returns the patterns, as they are written, that match one of the files.
func (l InFlight) Of(files []review.File) []string {
	var patterns []string
	for _, limit := range l {
		if limit.path.matchesAny(files) {
			patterns = append(patterns, limit.path.text)
		}
	}
	return patterns
}

// Patterns are those of all entries, in order.
func (l InFlight) Patterns() []string {
	patterns := make([]string, len(l))
	for i, limit := range l {
		patterns[i] = limit.path.text
	}
	return patterns
}

// Limits is how many reviews each pattern admits.
func (l InFlight) Limits() map[string]int {
	limits := make(map[string]int, len(l))
	for _, limit := range l {
		limits[limit.path.text] = limit.reviews
	}
	return limits
}
