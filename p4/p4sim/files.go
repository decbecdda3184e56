package main

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// selected yields the files that the arguments select, each with its revisions up to the
// selected one. An argument that selects none gets a warning.
func (s *session) selected(args []string) iter.Seq[[]*revision] {
	return func(yield func([]*revision) bool) {
		for _, arg := range args {
			spec, ok := parseFilespec(arg)
			if !ok {
				s.out.message(badRevision, arg)
				continue
			}
			found := false
			for revs := range s.lookUp(spec) {
				found = true
				if !yield(revs) {
					return
				}
			}
			if !found {
				s.out.message(noSuchFiles, arg)
			}
		}
	}
}

// lookUp yields the files of a pattern, each with its revisions up to the selected one.
func (s *session) lookUp(spec filespec) iter.Seq[[]*revision] {
	if spec.shelf > 0 {
		return s.shelved(spec)
	}
	return func(yield func([]*revision) bool) {
		for _, path := range s.depot.matching(spec.pattern) {
			revs := s.depot.files[path]
			n := len(revs)
			for n > 0 && (revs[n-1].Change > spec.high || spec.rev > 0 && revs[n-1].Rev > spec.rev) {
				n--
			}
			if n > 0 && (spec.rev == 0 || revs[n-1].Rev == spec.rev) && !yield(revs[:n]) {
				return
			}
		}
	}
}

func (s *session) shelved(spec filespec) iter.Seq[[]*revision] {
	return func(yield func([]*revision) bool) {
		c := s.visibleChange(spec.shelf)
		for i := 0; c != nil && i < len(c.Shelved); i++ {
			if s.depot.matches(spec.pattern, c.Shelved[i].Path) && !yield(c.Shelved[i:i+1]) {
				return
			}
		}
	}
}

// newest is the last revision.
func newest(revs []*revision) *revision { return revs[len(revs)-1] }

func (s *session) files(f flags, args []string) error {
	left := f.limit()
	for revs := range s.selected(args) {
		r := newest(revs)
		if f["e"] != "" && r.deleted() {
			continue
		}
		one, err := s.open(r)
		if err != nil {
			return err
		}
		s.out.record(one.listed())
		if left--; left <= 0 {
			break
		}
	}
	return nil
}

func (f *file) listed() []field {
	return []field{
		{"depotFile", f.Path}, {"rev", strconv.Itoa(f.Rev)}, {"change", strconv.Itoa(f.Change)},
		{"action", f.Action}, {"type", f.fileType}, {"time", seconds(f.Time)},
	}
}

// print sends contents; of a deleted file only the record.
func (s *session) print(f flags, args []string) error {
	s.out.quiet = f["q"] != ""
	for revs := range s.selected(args) {
		r := newest(revs)
		if !s.mayRead() {
			s.out.message(accessDenied, r.Path+"#"+strconv.Itoa(r.Rev))
			continue
		}
		one, err := s.open(r)
		if err != nil {
			return err
		}
		if one.deleted() {
			s.out.record(one.listed())
			continue
		}
		s.out.record(append(one.listed(), field{"fileSize", one.size()}))
		if s.faults.damages(r) {
			s.out.message(checkoutFailed, strings.TrimPrefix(r.Path, "//"))
		} else {
			s.out.content(one.content, one.binary())
		}
	}
	return nil
}

// filelog reports the history of files, each up to the revision that the argument
// names, without what happened before the file was moved.
func (s *session) filelog(f flags, args []string) error {
	for revs := range s.selected(args) {
		record := []field{{"depotFile", revs[0].Path}}
		for i, r := range slices.Backward(revs) {
			n := len(revs) - 1 - i
			if n == f.limit() {
				break
			}
			one, err := s.open(r)
			if err != nil {
				return err
			}
			record = append(record, numbered(n, s.logged(one))...)
			record = append(record, integration(n, one)...)
		}
		s.out.record(record)
	}
	return nil
}

// logged are the fields of one revision of p4 filelog.
func (s *session) logged(f *file) []field {
	c := s.depot.change(f.Change)
	fields := []field{
		{"rev", strconv.Itoa(f.Rev)}, {"change", strconv.Itoa(f.Change)}, {"action", f.Action},
		{"type", f.fileType}, {"time", seconds(f.Time)}, {"user", c.User}, {"client", c.Client},
	}
	if !f.deleted() {
		fields = append(fields, field{"fileSize", f.size()}, field{"digest", f.digest()})
	}
	return append(fields, field{"desc", summary(c.Desc)})
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
	return []field{{"how" + key, how}, {"file" + key, path}, {"srev" + key, "#none"}, {"erev" + key, "#" + strconv.Itoa(rev)}}
}
