package main

import (
	"slices"
	"strconv"
	"strings"
)

// eachArgument calls visit with each file argument. One for which it finds nothing gets a
// warning.
func (s *session) eachArgument(args []string, visit func(filespec) (found bool, err error)) error {
	for _, arg := range args {
		spec, ok := parseFilespec(arg)
		if !ok {
			s.out.message(badRevision, "arg", arg)
			continue
		}
		found, err := visit(spec)
		if err != nil {
			return err
		}
		if !found {
			s.out.message(noSuchFiles, "argc", arg)
		}
	}
	return nil
}

// selected visits the revision that each argument selects of each of its files,
// until visit returns false.
func (s *session) selected(args []string, visit func(*revision) (bool, error)) error {
	return s.eachArgument(args, func(spec filespec) (found bool, err error) {
		err = s.selectOne(spec, func(r *revision) (bool, error) {
			if !s.may("list", string(r.Path)) {
				return true, nil
			}
			found = true
			more, err := visit(r)
			return more && !s.out.stopped, err
		})
		return found, err
	})
}

func (s *session) selectOne(spec filespec, visit func(*revision) (bool, error)) error {
	if spec.shelf > 0 {
		c, err := s.visibleChange(spec.shelf)
		if c == nil || err != nil {
			return err
		}
		for i := range c.Shelved {
			if !s.depot.matches(spec.pattern, string(c.Shelved[i].Path)) {
				continue
			}
			if more, err := visit(&c.Shelved[i]); err != nil || !more {
				return err
			}
		}
		return nil
	}
	if spec.rev > 0 {
		r, err := s.depot.revision(raw(spec.pattern), spec.rev)
		if r == nil || err != nil {
			return err
		}
		_, err = visit(r)
		return err
	}
	return s.depot.eachFile(spec.pattern, func(revs []revision) (bool, error) {
		for i := len(revs) - 1; i >= 0; i-- {
			if revs[i].Change <= spec.high {
				return visit(&revs[i])
			}
		}
		return true, nil
	})
}

func (s *session) files(f flags, args []string) error {
	left := f.limit()
	return s.selected(args, func(r *revision) (bool, error) {
		if f["e"] != "" && r.deleted() {
			return true, nil
		}
		one, err := s.open(r)
		if err == nil {
			s.out.record(one.listed())
		}
		left--
		return left > 0, err
	})
}

func (f *file) listed() []field {
	return []field{
		{"depotFile", string(f.Path)}, {"rev", strconv.Itoa(f.Rev)}, {"change", strconv.Itoa(f.Change)},
		{"action", f.Action}, {"type", f.fileType}, {"time", seconds(f.Time)},
	}
}

// print sends contents; of a deleted file only the record.
func (s *session) print(f flags, args []string) error {
	s.out.quiet = f["q"] != ""
	return s.selected(args, func(r *revision) (bool, error) {
		if !s.may("read", string(r.Path)) {
			s.out.message(accessDenied, "argc", string(r.Path)+"#"+strconv.Itoa(r.Rev))
			return true, nil
		}
		one, err := s.open(r)
		if err != nil {
			return false, err
		}
		if one.deleted() {
			s.out.record(one.listed())
			return true, nil
		}
		s.out.record(append(one.listed(), field{"fileSize", one.size()}))
		if damage := s.faults.damages(r); damage != nil {
			s.out.message(checkoutFailed, "lbrFile", strings.TrimPrefix(string(r.Path), "//"))
			return !damage.Ends, nil
		}
		s.out.content(one.content, one.binary())
		return true, nil
	})
}

// filelog reports the history of files, each up to the revision that the argument
// names, without what happened before the file was moved.
func (s *session) filelog(f flags, args []string) error {
	return s.eachArgument(args, func(spec filespec) (found bool, err error) {
		err = s.depot.eachFile(spec.pattern, func(revs []revision) (bool, error) {
			if spec.rev > 0 {
				revs = slices.DeleteFunc(revs, func(r revision) bool { return r.Rev > spec.rev })
			}
			if len(revs) == 0 || !s.may("list", string(revs[0].Path)) {
				return true, nil
			}
			found = true
			slices.Reverse(revs)
			return !s.out.stopped, s.history(revs[:min(f.limit(), len(revs))])
		})
		return found, err
	})
}

func (s *session) history(revs []revision) error {
	record := []field{{"depotFile", string(revs[0].Path)}}
	for i := range revs {
		one, err := s.open(&revs[i])
		if err != nil {
			return err
		}
		c, err := s.depot.change(one.Change)
		if err != nil {
			return err
		}
		fields := []field{
			{"rev", strconv.Itoa(one.Rev)}, {"change", strconv.Itoa(one.Change)}, {"action", one.Action},
			{"type", one.fileType}, {"time", seconds(one.Time)}, {"user", c.User}, {"client", c.Client},
		}
		if !one.deleted() {
			fields = append(fields, field{"fileSize", one.size()}, field{"digest", one.digest()})
		}
		record = append(record, numbered(i, append(fields, field{"desc", summary(c.Desc)}))...)
		record = append(record, integration(i, one)...)
	}
	s.out.record(record)
	return nil
}

// integration are the fields that relate a revision to another file.
func integration(i int, f *file) []field {
	how, path, rev := "branch from", f.From, f.FromRev
	switch {
	case f.Into != "":
		how, path, rev = "moved into", f.Into, f.IntoRev
	case f.From == "":
		return nil
	case strings.HasPrefix(f.Action, "move/"):
		how = "moved from"
	}
	key := strconv.Itoa(i) + ",0"
	return []field{{"how" + key, how}, {"file" + key, string(path)}, {"srev" + key, "#none"}, {"erev" + key, "#" + strconv.Itoa(rev)}}
}
