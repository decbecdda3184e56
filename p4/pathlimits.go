package p4

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	seen := make(map[string]bool)
	return parseEach("", "//depot/path/... 4", entries, func(path pathPattern, rest string) (pathLimit, error) {
		slots, err := strconv.Atoi(strings.TrimSpace(rest))
		switch {
		case seen[path.text]:
			return pathLimit{}, errors.New("the path has an entry already")
		case err != nil || slots < 1:
			return pathLimit{}, fmt.Errorf("%q after the path is not a number of reviews, 1 or more", strings.TrimSpace(rest))
		}
		seen[path.text] = true
		return pathLimit{path, slots}, nil
	})
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
