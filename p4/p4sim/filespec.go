package main

import (
	"math"
	"strconv"
	"strings"
)

// maxChange is above all numbers of changelists.
const maxChange = math.MaxInt32

// A filespec is one file argument.
type filespec struct {
	pattern string
	rev     int // of path#rev; 0 for none
	shelf   int // the change of path@=change; 0 for none
	// low and high bound the changelists: path@N sets high, path@N,@M both.
	low, high int
}

// parseFilespec reads a file argument; ok is false if it is a local
// path or its revision is malformed.
func parseFilespec(arg string) (f filespec, ok bool) {
	f = filespec{pattern: arg, low: 1, high: maxChange}
	if !strings.HasPrefix(arg, "//") {
		return f, false
	}
	at := strings.IndexAny(arg, "#@")
	if at < 0 {
		return f, true
	}
	f.pattern = arg[:at]
	kind, number := arg[at:at+1], arg[at+1:]
	first, last, isRange := strings.Cut(number, ",@")
	var err error
	switch shelf, isShelf := strings.CutPrefix(number, "="); {
	case kind == "#":
		f.rev, err = strconv.Atoi(number)
	case isShelf:
		f.shelf, err = strconv.Atoi(shelf)
	case isRange:
		if f.low, err = strconv.Atoi(first); err == nil {
			f.high, err = strconv.Atoi(last)
		}
	default:
		f.high, err = strconv.Atoi(number)
	}
	return f, err == nil && f.rev >= 0 && f.high >= 0
}

// A caseFold is how a server compares paths and names: caseInsensitive ignores
// the case of letters.
type caseFold bool

const caseInsensitive caseFold = true

// matches reports whether a depot path is the pattern, or in the tree that a
// pattern with "..." at its end names.
func (c caseFold) matches(pattern, path string) bool {
	tree, isTree := strings.CutSuffix(pattern, "...")
	if isTree {
		path = path[:min(len(tree), len(path))]
	}
	return path == tree || c == caseInsensitive && strings.EqualFold(path, tree)
}
