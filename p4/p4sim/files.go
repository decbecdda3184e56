package main

import (
	"errors"
	"math"
	"os"
	"strconv"
)

// selected visits, for each file argument, the revision of each file that it
// selects; with all, every revision in its range, newest first. Arguments that
// select nothing are warned about.
func (s *session) selected(args []string, all bool, visit func(*revision) error) error {
	for _, arg := range args {
		spec, bad := s.parseFilespec(arg)
		if bad != nil {
			s.out.fail(*bad)
			continue
		}
		if err := s.selectOne(spec, all, visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) selectOne(spec *filespec, all bool, visit func(*revision) error) error {
	found := false
	take := func(r *revision) error {
		found = true
		return visit(r)
	}
	shelf, err := s.shelf(spec)
	if err != nil {
		return err
	}
	for i := range shelf {
		if err := take(&shelf[i]); err != nil {
			return err
		}
	}
	err = s.depot.eachFile(spec.pattern, func(revs []revision) (bool, error) {
		for i := len(revs) - 1; i >= 0; i-- {
			if !spec.contains(&revs[i]) {
				continue
			}
			if err := take(&revs[i]); err != nil {
				return false, err
			}
			if !all {
				break
			}
		}
		return !s.out.stopped, nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err == nil && !found {
		s.sayMissing(spec)
	}
	return err
}

// sayMissing warns about an argument that selects nothing the user may see.
func (s *session) sayMissing(spec *filespec) {
	if s.depot.hides(spec.pattern) {
		s.out.say(protectedName, spec.arg)
		return
	}
	s.out.say(noSuchFiles, spec.arg)
}

// shelf are the shelved files that @=change selects.
func (s *session) shelf(spec *filespec) ([]revision, error) {
	if spec.low.change == 0 || spec.low.change != spec.high.change {
		return nil, nil
	}
	c, err := s.visibleChange(spec.low.change)
	if c == nil || err != nil {
		return nil, err
	}
	var found []revision
	for _, r := range c.Shelved {
		if matches(spec.pattern, string(r.Path)) {
			found = append(found, r)
		}
	}
	return found, nil
}

// errEnough ends a visit early; it is no failure.
var errEnough = errors.New("enough files")

// limited stops a visit after as many files as -m allows.
func limited(f flags, visit func(*revision) error) func(*revision) error {
	left := math.MaxInt
	if f.has("m") {
		left = f.number("m")
	}
	return func(r *revision) error {
		if left == 0 {
			return errEnough
		}
		left--
		return visit(r)
	}
}

func (s *session) files(f flags, args []string) error {
	return s.selected(args, f.has("a"), limited(f, func(r *revision) error {
		if f.has("e") && r.deleted() {
			return nil
		}
		one, err := s.open(r)
		if err != nil {
			return err
		}
		if s.out.tagged {
			s.out.record(fileRecord(one))
			return nil
		}
		s.sayFile(one)
		return nil
	}))
}

func (s *session) sayFile(one *file) {
	s.out.say(filesData, string(one.Path), hashRev(&one.revision), one.Action, "change "+strconv.Itoa(one.Change), one.kind)
}

func fileRecord(one *file) []field {
	return []field{
		{"depotFile", string(one.Path)}, {"rev", revNumber(&one.revision)}, {"change", strconv.Itoa(one.Change)},
		{"action", one.Action}, {"type", one.kind}, {"time", seconds(one.Time)},
	}
}

// print sends contents; of deleted files only the headline.
func (s *session) print(f flags, args []string) error {
	s.unexpanded = f.has("k") || f.has("K")
	return s.selected(args, f.has("a"), limited(f, func(r *revision) error {
		if r.Action == "purge" || r.Action == "archive" {
			s.out.say(noSuchFiles, string(r.Path)+hashRev(r))
			return nil
		}
		one, err := s.open(r)
		if err != nil {
			return err
		}
		switch {
		case s.out.tagged:
			s.out.record(printRecord(one))
		case !f.has("q"):
			s.sayFile(one)
		}
		if one.deleted() {
			return nil
		}
		if name := f.value("o"); name != "" {
			return os.WriteFile(name, one.content, 0o444) //nolint:gosec // p4's files are readable and read-only
		}
		s.out.content(section(f, one.content), one.binary())
		return nil
	}))
}

func printRecord(one *file) []field {
	record := fileRecord(one)
	if !one.deleted() {
		record = append(record, field{"fileSize", one.size()})
	}
	return record
}

// section is the part of the content that --offset and --size ask for.
func section(f flags, content []byte) []byte {
	content = content[min(f.number("--offset"), len(content)):]
	if f.has("--size") {
		content = content[:min(f.number("--size"), len(content))]
	}
	return content
}

// fstat always reports records, also where others report text.
func (s *session) fstat(f flags, args []string) error {
	return s.selected(args, false, limited(f, func(r *revision) error {
		one, err := s.open(r)
		if err != nil {
			return err
		}
		s.out.record(fstatRecord(f, one))
		return nil
	}))
}

func fstatRecord(f flags, one *file) []field {
	record := []field{
		{"depotFile", string(one.Path)}, {"headAction", one.Action}, {"headType", one.kind},
		{"headTime", seconds(one.Time)}, {"headRev", revNumber(&one.revision)},
		{"headChange", strconv.Itoa(one.Change)}, {"headModTime", seconds(one.modTime())},
	}
	if hasLetter(f["O"], 'l') && !one.deleted() {
		record = append(record, field{"fileSize", one.size()}, field{"digest", one.digest()})
	}
	return onlyFields(f, record)
}
