package main

import (
	"maps"
	"slices"
	"strings"
)

// A pair is what diff2 compares; one side may be missing.
type pair struct{ left, right *file }

// status is the word diff2 has for how the sides differ.
func (p pair) status() string {
	switch {
	case p.right == nil:
		return "left only"
	case p.left == nil:
		return "right only"
	case string(p.left.content) != string(p.right.content):
		return "content"
	case p.left.kind != p.right.kind:
		return "types"
	}
	return "identical"
}

func (s *session) diff2(f flags, args []string) error {
	var sides [2]*filespec
	for i, arg := range args {
		spec, bad := s.parseFilespec(arg)
		if bad == nil && spec.ranged && !s.isShelf(spec) {
			bad = problem(noRevRange)
		}
		if bad != nil {
			s.out.fail(*bad)
			return nil
		}
		sides[i] = spec
	}
	left, right := sides[0], sides[1]
	pairs, err := s.pairs(left, right)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		s.sayMissing(left)
		return nil
	}
	shown := false
	for _, p := range pairs {
		shown = s.diffPair(f, p) || shown
	}
	if !shown {
		s.out.say(noDifferingFiles, left.arg)
	}
	return nil
}

// pairs matches the files of both sides by what the wildcards stood for, in
// the order of their paths.
func (s *session) pairs(left, right *filespec) ([]pair, error) {
	byName := map[string]*pair{}
	collect := func(spec *filespec, put func(*pair, *file)) error {
		return s.eachPresent(spec, func(one *file) {
			values, _ := match(spec.pattern, string(one.Path))
			name := substitute(left.pattern, values)
			if byName[name] == nil {
				byName[name] = &pair{}
			}
			put(byName[name], one)
		})
	}
	if err := collect(left, func(p *pair, one *file) { p.left = one }); err != nil {
		return nil, err
	}
	if err := collect(right, func(p *pair, one *file) { p.right = one }); err != nil {
		return nil, err
	}
	var pairs []pair
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		pairs = append(pairs, *byName[name])
	}
	return pairs, nil
}

// isShelf reports whether @=change names a pending change: of submitted ones
// it would be a range.
func (s *session) isShelf(spec *filespec) bool {
	c, err := s.depot.change(spec.high.change)
	return err == nil && c != nil && c.Pending && spec.low.change == spec.high.change
}

// eachPresent visits the files of one side that are not deleted there.
func (s *session) eachPresent(spec *filespec, visit func(*file)) error {
	open := func(r *revision) error {
		if r == nil || r.deleted() {
			return nil
		}
		one, err := s.open(r)
		if err == nil {
			visit(one)
		}
		return err
	}
	shelf, err := s.shelf(spec)
	if err != nil {
		return err
	}
	for i := range shelf {
		if err := open(&shelf[i]); err != nil {
			return err
		}
	}
	return s.depot.eachFile(spec.pattern, func(revs []revision) (bool, error) {
		return true, open(spec.pick(revs))
	})
}

// diffPair reports whether it printed anything.
func (s *session) diffPair(f flags, p pair) bool {
	status := p.status()
	if hasLetter(f["O"], 'd') && status == "identical" {
		return false
	}
	if s.out.tagged {
		s.out.record(diff2Record(status, p))
		return true
	}
	switch {
	case f.has("u") && status == "content":
		s.diffUnified(f, p)
	case f.has("u"), f.has("q") && status == "identical":
		return false
	default:
		s.sayPair(status, p)
		if status == "content" && !f.has("q") {
			s.diff(p.left, p.right, parseDiffFlags(f["d"]))
		}
	}
	return true
}

func diff2Record(status string, p pair) []field {
	record := append([]field{{"status", status}}, side("", p.left)...)
	return append(record, side("2", p.right)...)
}

// side are the fields of one side of a pair, none if it is missing.
func side(suffix string, one *file) []field {
	if one == nil {
		return nil
	}
	return []field{
		{"depotFile" + suffix, string(one.Path)}, {"rev" + suffix, revNumber(&one.revision)}, {"type" + suffix, one.kind},
	}
}

func (s *session) sayPair(status string, p pair) {
	switch status {
	case "left only":
		s.out.say(diff2Left, string(p.left.Path), hashRev(&p.left.revision))
		return
	case "right only":
		s.out.say(diff2Right, string(p.right.Path), hashRev(&p.right.revision))
		return
	}
	line := map[string]*message{"content": diff2Content, "types": diff2Types, "identical": diff2Identical}[status]
	s.out.say(line, string(p.left.Path), hashRev(&p.left.revision), p.left.kind,
		string(p.right.Path), hashRev(&p.right.revision), p.right.kind)
}

func (s *session) diffUnified(f flags, p pair) {
	left, right := p.left, p.right
	if left.binary() || right.binary() {
		s.out.say(diff2UnifiedDiffer, string(left.Path), hashRev(&left.revision), string(right.Path), hashRev(&right.revision))
		return
	}
	s.out.say(diff2Unified, string(left.Path), s.diffDate(left), string(right.Path), s.diffDate(right))
	o := parseDiffFlags(f["d"])
	o.unified = true
	s.out.text(diffText(left.content, right.content, o), false)
}

// diffDate is the form of dates in diff2 -u: the zone has no plus sign.
func (s *session) diffDate(one *file) string {
	return strings.Replace(formatTime(s.loc, dateTime+".000000000 -0700", one.Time), " +", " ", 1)
}
