// Package selection decides by path which files of a change are reviewed, before their
// content is fetched, and gives the reason for every other file. What the content says about
// itself, such as "code generated", is the author's word and decides nothing.
//
// The checks, in order: files that may hold secrets are never read; excluded files are
// skipped; included files are reviewed; vendored, lock and generated files are skipped.
package selection

import (
	"errors"
	"fmt"

	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/review"
)

// Config holds the configured patterns; see package glob.
type Config struct {
	// Files that are not reviewed, besides vendored, lock and generated files.
	Exclude []string `yaml:"exclude"`
	// Vendored, lock and generated files that are reviewed. Files that may hold
	// secrets are never read.
	Include []string `yaml:"include"`
}

// A Policy decides about files. It is safe for concurrent use.
type Policy struct {
	exclude, include glob.List
}

// New returns a policy. The error joins all problems.
func New(cfg Config) (*Policy, error) {
	exclude, errExclude := glob.ParseList(cfg.Exclude)
	include, errInclude := glob.ParseList(cfg.Include)
	if err := errors.Join(errExclude, errInclude); err != nil {
		return nil, fmt.Errorf("read selection: %w", err)
	}
	return &Policy{exclude, include}, nil
}

// A Skip is the reason for skipping a file. The zero Skip means that the file is
// reviewed.
type Skip struct {
	Reason review.SkipReason
	// Pattern is the matching pattern, as written.
	Pattern string
}

// ByPath decides by the depot path.
func (p *Policy) ByPath(depotPath string) Skip {
	if pattern, ok := secretBearing(depotPath); ok {
		return Skip{review.SkipSecret, pattern}
	}
	if pattern, ok := p.exclude.Match(depotPath); ok {
		return Skip{review.SkipExcluded, pattern}
	}
	if _, ok := p.include.Match(depotPath); ok {
		return Skip{}
	}
	for _, list := range builtIn {
		if pattern, ok := list.patterns.Match(depotPath); ok {
			return Skip{list.reason, pattern}
		}
	}
	return Skip{}
}

// MayHoldSecrets reports whether a file is never read because its path suggests
// credentials.
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
