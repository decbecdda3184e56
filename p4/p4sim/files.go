package main

import (
	"iter"
	"math"
	"regexp"
	"slices"
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
			all := s.lookUp(spec)
			for _, revs := range all {
				if !yield(revs) {
					return
				}
			}
			if len(all) == 0 {
				s.out.message(noSuchFiles, arg)
			}
		}
	}
}

// lookUp returns the files of a pattern, each with its revisions up to the selected one.
func (s *session) lookUp(spec filespec) (all [][]*revision) {
	if spec.shelf > 0 {
		if c := s.visibleChange(spec.shelf); c != nil {
			for i, r := range c.Shelved {
				if s.depot.matches(spec.pattern, r.Path) {
					all = append(all, c.Shelved[i:i+1])
				}
			}
		}
		return all
	}
	for _, path := range s.depot.matching(spec.pattern) {
		revs := s.depot.files[path]
		n := len(revs)
		for n > 0 && (revs[n-1].Change > spec.high || spec.rev > 0 && revs[n-1].Rev > spec.rev) {
			n--
		}
		if n > 0 && (spec.rev == 0 || revs[n-1].Rev == spec.rev) {
			all = append(all, revs[:n])
		}
	}
	return all
}

func (s *session) files(f flags, args []string) error {
	left := f.limit()
	for revs := range s.selected(args) {
		r := revs[len(revs)-1]
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
		{"action", f.Action}, {"type", f.fileType},
	}
}

// print sends contents; of a deleted file only the record. All permissions but list
// include reading.
func (s *session) print(f flags, args []string) error {
	s.out.quiet = f["q"] != ""
	for revs := range s.selected(args) {
		r := revs[len(revs)-1]
		if s.permission() == "list" {
			s.out.message(accessDenied, r.Path+"#"+strconv.Itoa(r.Rev))
			continue
		}
		one, err := s.open(r)
		if err != nil {
			return err
		}
		if r.deleted() {
			s.out.record(one.listed())
			continue
		}
		s.out.record(append(one.listed(), field{"fileSize", one.size()}))
		if s.faults.damages(r) {
			s.out.message(checkoutFailed, strings.TrimPrefix(r.Path, "//"))
		} else {
			s.out.content(one.content, strings.HasPrefix(one.fileType, "binary"))
		}
	}
	return nil
}

// filelog reports the history of files, each up to the revision that the argument
// names, without what happened before the file was moved, and where it was copied to.
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
			fields := []field{{"rev", strconv.Itoa(r.Rev)}, {"change", strconv.Itoa(r.Change)}, {"action", r.Action}, {"type", one.fileType}}
			if !r.deleted() {
				fields = append(fields, field{"fileSize", one.size()}, field{"digest", one.digest()})
			}
			record = append(record, numbered(n, fields)...)
			if r.From != "" {
				how, key := "branch from", strconv.Itoa(n)+",0"
				if strings.HasPrefix(r.Action, "move/") {
					how = "moved from"
				}
				record = append(record, field{"how" + key, how}, field{"file" + key, r.From}, field{"srev" + key, "#none"}, field{"erev" + key, "#" + strconv.Itoa(r.FromRev)})
			}
		}
		s.out.record(record)
	}
	return nil
}
