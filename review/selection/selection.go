// Package selection decides which files of a change are reviewed, and gives the reason
// for every other file. Decisions by path come before the content is fetched.
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
	if p.includes(depotPath) {
		return Skip{}
	}
	for _, list := range builtIn {
		if pattern, ok := list.patterns.Match(depotPath); ok {
			return Skip{list.reason, pattern}
		}
	}
	return Skip{}
}

// ByContent decides by the texts before and after the change; before is empty for a new
// file.
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
