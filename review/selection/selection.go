// Package selection decides which files of a change are worth a review, and
// says of every other file why it is not. What a path alone decides is decided
// before the content is fetched.
//
// The gates, in order: what may hold secrets is never read, whatever else is
// configured; what the configuration excludes; what it includes passes from
// here on; what is vendored, locked or generated is left out.
package selection

import (
	"errors"
	"fmt"

	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/review"
)

// Config is what an installation adds to the built-in lists.
type Config struct {
	// Exclude lists what is not reviewed; see package glob. Default none.
	Exclude []string
	// Include lists what is reviewed although it looks vendored, locked or
	// generated. It brings back neither what Exclude names nor what may hold
	// secrets. Default none.
	Include []string
}

// A Policy applies the gates. It may be used by several goroutines.
type Policy struct {
	exclude, include glob.List
}

// New checks cfg; an error joins all problems.
func New(cfg Config) (*Policy, error) {
	exclude, errExclude := glob.ParseList(cfg.Exclude)
	include, errInclude := glob.ParseList(cfg.Include)
	if err := errors.Join(errExclude, errInclude); err != nil {
		return nil, fmt.Errorf("read selection: %w", err)
	}
	return &Policy{exclude, include}, nil
}

// A Verdict says why a file is not reviewed; the zero Verdict lets it pass.
type Verdict struct {
	Reason review.SkipReason
	// Pattern is the one that decided, as it is written in the list.
	Pattern string
}

// ByPath judges a file by its depot path.
func (p *Policy) ByPath(depotPath string) Verdict {
	if pattern, ok := secretBearing(depotPath); ok {
		return Verdict{review.SkipSecret, pattern}
	}
	if pattern, ok := p.exclude.Match(depotPath); ok {
		return Verdict{review.SkipExcluded, pattern}
	}
	if p.includes(depotPath) {
		return Verdict{}
	}
	for _, list := range builtIn {
		if pattern, ok := list.patterns.Match(depotPath); ok {
			return Verdict{list.reason, pattern}
		}
	}
	return Verdict{}
}

// ByContent judges a file by its texts before and after the change; before is
// empty for a new file.
func (p *Policy) ByContent(depotPath, before, after string) review.SkipReason {
	if p.includes(depotPath) {
		return ""
	}
	if isMinified(depotPath, after) || isGenerated(after) && (before == "" || isGenerated(before)) {
		return review.SkipGenerated
	}
	return ""
}

func (p *Policy) includes(depotPath string) bool {
	_, ok := p.include.Match(depotPath)
	return ok
}

// MayHoldSecrets reports whether a file is never read, for its path says that
// it may hold credentials.
func MayHoldSecrets(depotPath string) bool {
	_, ok := secretBearing(depotPath)
	return ok
}

func secretBearing(depotPath string) (pattern string, ok bool) {
	if _, sample := secretSamples.Match(depotPath); sample {
		return "", false
	}
	return secretPaths.Match(depotPath)
}
