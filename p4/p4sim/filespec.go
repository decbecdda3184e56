package main

import (
	"math"
	"regexp"
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

// filespecs matches path, path#rev, path@change, path@=change and path@low,@high.
var filespecs = regexp.MustCompile(`^(//[^#@]*)(?:#(\d{1,10})|@=(\d{1,10})|@(?:(\d{1,10}),@)?(\d{1,10}))?$`)

// parseFilespec reads a file argument; ok is false if it is a local
// path or its revision is malformed.
func parseFilespec(arg string) (f filespec, ok bool) {
	parts := filespecs.FindStringSubmatch(arg)
	if parts == nil {
		return f, false
	}
	number := func(i, other int) int {
		if n, err := strconv.Atoi(parts[i]); err == nil {
			return n
		}
		return other
	}
	return filespec{parts[1], number(2, 0), number(3, 0), number(4, 1), number(5, maxChange)}, true
}

// A caseFold is how a server compares paths and names: caseInsensitive ignores
// the case of letters.
type caseFold bool

const caseInsensitive caseFold = true

// matches reports whether a depot path is the pattern, or in the tree that a
// pattern with "..." at its end names, or in the folder of a pattern with "/*".
func (c caseFold) matches(pattern, path string) bool {
	if folder, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasSuffix(folder, "/") {
		return strings.LastIndexByte(path, '/') == len(folder)-1 && c.matches(folder+"...", path)
	}
	tree, isTree := strings.CutSuffix(pattern, "...")
	if isTree {
		path = path[:min(len(tree), len(path))]
	}
	return path == tree || c == caseInsensitive && strings.EqualFold(path, tree)
}
