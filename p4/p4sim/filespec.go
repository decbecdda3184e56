package main

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A filespec is one file argument: a path or pattern, and which revisions.
type filespec struct {
	arg     string
	pattern string
	// single is set if one revision was named by its number, ranged if the
	// argument names a range.
	single, ranged bool
	low, high      bound
}

// A bound limits revisions by number, change and time.
type bound struct {
	rev    int
	change int
	time   int64
}

var noBound = bound{math.MaxInt, math.MaxInt, math.MaxInt64}

// contains reports whether the revision lies in the range.
func (f *filespec) contains(r *revision) bool {
	return f.low.rev <= r.Rev && r.Rev <= f.high.rev &&
		f.low.change <= r.Change && r.Change <= f.high.change &&
		f.low.time <= r.Time && r.Time <= f.high.time
}

// pick is the highest revision in the range, or nil.
func (f *filespec) pick(revs []revision) *revision {
	for i := len(revs) - 1; i >= 0; i-- {
		if f.contains(&revs[i]) {
			return &revs[i]
		}
	}
	return nil
}

// asRange reads a single revision as the end of a range from the first one.
func (f *filespec) asRange() {
	if f.single {
		f.low.rev = 0
	}
}

// parseFilespec reads a file argument. Dates are in the server's local time.
func (s *session) parseFilespec(arg string) (*filespec, *utterance) {
	path, spec := arg, ""
	if i := strings.IndexAny(arg, "#@"); i >= 0 {
		path, spec = arg[:i], arg[i:]
	}
	if !strings.HasPrefix(path, "//") {
		return nil, problem(needClient, path, s.client())
	}
	if bad := checkPath(path); bad != nil {
		return nil, bad
	}
	f := &filespec{arg: arg, pattern: path, high: noBound}
	if spec == "" {
		return f, nil
	}
	first, last, isRange := strings.Cut(spec, ",")
	if isRange && !strings.HasPrefix(last, "#") && !strings.HasPrefix(last, "@") {
		last = first[:1] + last
	}
	if !isRange {
		return f, s.applySingle(f, first)
	}
	f.ranged = true
	if bad := s.applyBound(&f.low, first); bad != nil {
		return nil, bad
	}
	return f, s.applyBound(&f.high, last)
}

func checkPath(path string) *utterance {
	for part := range strings.SplitSeq(path[2:], "/") {
		switch part {
		case "":
			return problem(nullDir, path)
		case ".", "..":
			return problem(relativePath, path)
		}
	}
	return nil
}

// applySingle reads a specifier that stands alone.
func (s *session) applySingle(f *filespec, spec string) *utterance {
	for _, op := range []string{"@=", "@>=", "@<=", "@>", "@<"} {
		if digits, ok := strings.CutPrefix(spec, op); ok {
			return f.compare(op, digits)
		}
	}
	if bad := s.applyBound(&f.high, spec); bad != nil {
		return bad
	}
	if spec[0] == '#' && f.high.rev != math.MaxInt {
		f.low.rev, f.single = f.high.rev, true
	}
	return nil
}

func (f *filespec) compare(op, digits string) *utterance {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return problem(badAtRev, op[1:]+digits)
	}
	f.ranged = true
	switch op {
	case "@=":
		f.low.change, f.high.change = n, n
	case "@>=":
		f.low.change = n
	case "@>":
		f.low.change = n + 1
	case "@<=":
		f.high.change = n
	case "@<":
		f.high.change = n - 1
	}
	return nil
}

// applyBound reads one end of a range.
func (s *session) applyBound(b *bound, spec string) *utterance {
	name := spec[1:]
	if name == "" {
		return problem(badRevSpec, spec)
	}
	n, err := strconv.Atoi(name)
	number := err == nil && n >= 0
	if spec[0] == '#' {
		switch {
		case number:
			b.rev = n
		case name == "none" || name == "have":
			b.rev = 0
		case name != "head":
			return problem(badRevision, name)
		}
		return nil
	}
	if number {
		b.change = n
		return nil
	}
	if name == "now" {
		return nil
	}
	for _, layout := range []string{"2006/01/02", "2006/01/02:15:04:05", dateTime} {
		if t, err := time.ParseInLocation(layout, name, s.loc); err == nil {
			b.time = t.Unix()
			return nil
		}
	}
	return problem(badAtRev, name)
}

// matches reports whether a depot path matches a pattern.
func matches(pattern, path string) bool {
	_, ok := match(pattern, path)
	return ok
}

// match also returns what each wildcard stood for: "..." matches anything, "*"
// and "%%1" to "%%9" anything but a slash. All of them match the empty text.
func match(pattern, path string) ([]string, bool) {
	prefix := literalPrefix(pattern)
	if !strings.HasPrefix(path, prefix) {
		return nil, false
	}
	pattern, path = pattern[len(prefix):], path[len(prefix):]
	if pattern == "" {
		return nil, path == ""
	}
	width, slashes := wildcard(pattern)
	for n := 0; n <= len(path); n++ {
		if rest, ok := match(pattern[width:], path[n:]); ok {
			return append([]string{path[:n]}, rest...), true
		}
		if n < len(path) && path[n] == '/' && !slashes {
			break
		}
	}
	return nil, false
}

// wildcard is the width of the wildcard that s starts with, 0 if it does not,
// and whether it matches slashes.
func wildcard(s string) (width int, slashes bool) {
	switch {
	case strings.HasPrefix(s, "..."):
		return 3, true
	case strings.HasPrefix(s, "*"):
		return 1, false
	case len(s) > 2 && s[:2] == "%%" && '1' <= s[2] && s[2] <= '9':
		return 3, false
	}
	return 0, false
}

// literalPrefix is the pattern up to its first wildcard.
func literalPrefix(pattern string) string {
	for i := range len(pattern) {
		if width, _ := wildcard(pattern[i:]); width > 0 {
			return pattern[:i]
		}
	}
	return pattern
}

// substitute replaces the wildcards of a pattern by what they stand for.
func substitute(pattern string, values []string) string {
	var b strings.Builder
	for pattern != "" {
		prefix := literalPrefix(pattern)
		b.WriteString(prefix)
		pattern = pattern[len(prefix):]
		width, _ := wildcard(pattern)
		pattern = pattern[width:]
		if width > 0 && len(values) > 0 {
			b.WriteString(values[0])
			values = values[1:]
		}
	}
	return b.String()
}
