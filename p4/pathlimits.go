package p4

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// PathLimits limit how many reviews of changes to a path run at a time.
type PathLimits []pathLimit

type pathLimit struct {
	path  pathPattern
	slots int
}

// NewPathLimits parses entries such as "//depot/main/... 4": a path as [NewOwners]
// takes it, and a number of reviews. Its errors have the class ConfigInvalid.
func NewPathLimits(entries []string) (PathLimits, error) {
	var limits PathLimits
	for i, text := range entries {
		l, err := parseLimit(text)
		if _, exists := limits.Limits()[l.path.text]; err == nil && exists {
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
	slots, err := strconv.Atoi(strings.TrimSpace(rest))
	if err != nil || slots < 1 {
		return pathLimit{}, fmt.Errorf("%q after the path is not a number of reviews, 1 or more", strings.TrimSpace(rest))
	}
	return pathLimit{path, slots}, nil
}

// Of returns the patterns that match one of the files, as they are written.
func (l PathLimits) Of(files []review.File) []string {
	var patterns []string
	for _, limit := range l {
		if limit.path.matchesAny(files) {
			patterns = append(patterns, limit.path.text)
		}
	}
	return patterns
}

// Patterns returns the patterns of all entries, in order.
func (l PathLimits) Patterns() []string {
	patterns := make([]string, len(l))
	for i, limit := range l {
		patterns[i] = limit.path.text
	}
	return patterns
}

// Limits returns the number of slots of each pattern.
func (l PathLimits) Limits() map[string]int {
	limits := make(map[string]int, len(l))
	for _, limit := range l {
		limits[limit.path.text] = limit.slots
	}
	return limits
}
