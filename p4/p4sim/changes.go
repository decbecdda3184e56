package main

import (
	"slices"
	"strconv"
	"strings"
)

// summaryLength is how many bytes of a description lists show.
const summaryLength = 31

// changes lists changelists, newest first: for each file argument those that
// changed a file of it, without arguments all.
func (s *session) changes(f flags, args []string) error {
	if len(args) == 0 {
		return s.listChanges(f, filespec{pattern: "//...", high: maxChange})
	}
	return s.eachArgument(args, func(spec filespec) (bool, error) { return true, s.listChanges(f, spec) })
}

func (s *session) listChanges(f flags, spec filespec) error {
	if limit := s.faults.find("limit"); limit != nil && spec.high < maxChange && spec.high-spec.low >= limit.Rows {
		s.out.message(faultMessages["MsgDm::MaxScanRows"], "maxScanRows", strconv.Itoa(limit.Rows))
		return nil
	}
	left := f.limit()
	return s.depot.eachChange(spec.low, spec.high, func(c *change) (bool, error) {
		if left == 0 {
			return false, nil
		}
		if f["s"] != "" && f["s"] != c.status() || !s.touches(c, spec) || s.faults.lags(c.Number) != nil {
			return true, nil
		}
		left--
		s.out.record(c.listed())
		return !s.out.stopped, nil
	})
}

// touches reports whether the change has a file of the pattern; a pending change
// counts for all files alone.
func (s *session) touches(c *change, spec filespec) bool {
	if spec.pattern == "//..." {
		return true
	}
	for _, file := range c.Files {
		if s.depot.matches(spec.pattern, string(file.Path)) {
			return true
		}
	}
	return false
}

// listed is the record of p4 changes.
func (c *change) listed() []field {
	record := []field{
		{"change", strconv.Itoa(c.Number)}, {"time", seconds(c.Time)}, {"user", c.User}, {"client", c.Client},
		{"status", c.status()}, {"changeType", "public"},
	}
	if path := c.path(); path != "" {
		record = append(record, field{"path", path})
	}
	if len(c.Shelved) > 0 {
		record = append(record, field{"shelved", ""})
	}
	if c.OldNumber != 0 {
		record = append(record, field{"oldChange", strconv.Itoa(c.OldNumber)})
	}
	return append(record, field{"desc", summary(c.Desc)})
}

func summary(desc raw) string { return string(desc[:min(len(desc), summaryLength)]) }

// describe reports changelists with their files.
func (s *session) describe(f flags, args []string) error {
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || arg[0] == '+' {
			s.out.message(badChange, "change", arg)
			continue
		}
		c, err := s.visibleChange(n)
		if err != nil {
			return err
		}
		if c == nil {
			s.out.message(noSuchChange, "change", "Change "+arg)
			continue
		}
		if err := s.describeOne(f, c); err != nil {
			return err
		}
	}
	return nil
}

// visibleChange returns nil if there is no such change, or if a fault says that
// the server does not have it yet.
func (s *session) visibleChange(n int) (*change, error) {
	lag := s.faults.lags(n)
	if lag != nil && lag.As == "" {
		return nil, nil
	}
	c, err := s.depot.change(n)
	if c != nil && lag != nil { // what a replica knows of the change before the submit or shelve
		pending := *c
		pending.Pending, pending.Files, pending.Shelved = true, nil, nil
		c = &pending
	}
	return c, err
}

func (s *session) describeOne(f flags, c *change) error {
	revs, err := s.describedRevisions(f, c)
	if err != nil {
		return err
	}
	record := []field{
		{"change", strconv.Itoa(c.Number)}, {"user", c.User}, {"client", c.Client}, {"time", seconds(c.Time)},
		{"desc", string(c.Desc)}, {"status", c.status()}, {"changeType", "public"},
	}
	switch path := c.path(); {
	case f["S"] != "":
		record = append(record, field{"shelved", ""})
	case path != "":
		record = append(record, field{"path", path})
	}
	if c.OldNumber != 0 {
		record = append(record, field{"oldChange", strconv.Itoa(c.OldNumber)})
	}
	for i, j := range c.Jobs {
		record = append(record, numbered(i, []field{{"job", j.Name}, {"jobstat", j.Status}})...)
	}
	for i := range revs {
		one, err := s.open(&revs[i])
		if err != nil {
			return err
		}
		record = append(record, numbered(i, one.described(f, c))...)
	}
	s.out.record(record)
	return nil
}

func (s *session) describedRevisions(f flags, c *change) ([]revision, error) {
	revs, err := c.Opened, error(nil)
	switch {
	case f["S"] != "":
		revs = c.Shelved
	case !c.Pending:
		revs, err = s.depot.revisions(c)
	}
	return slices.DeleteFunc(revs, func(r revision) bool { return !s.may("list", string(r.Path)) }), err
}

// described are the fields of one file. Only files on the server have a size and a
// digest; -s leaves out the source of a file.
func (f *file) described(given flags, c *change) []field {
	fields := []field{
		{"depotFile", string(f.Path)}, {"action", f.Action}, {"type", f.fileType}, {"rev", strconv.Itoa(f.Rev)},
	}
	if !f.deleted() && (!c.Pending || given["S"] != "") {
		fields = append(fields, field{"fileSize", f.size()}, field{"digest", f.digest()})
	}
	if f.From != "" && given["s"] == "" {
		fields = append(fields, field{"fromFile", string(f.From)}, field{"fromRev", strconv.Itoa(f.FromRev)})
	}
	return fields
}

// jobs reports the jobs that -e names, as Job=NAME|Job=NAME.
func (s *session) jobs(f flags, _ []string) error {
	terms := strings.Split(strings.ToLower(f["e"]), "|")
	for _, term := range terms {
		if field, _, ok := strings.Cut(term, "="); !ok || field != "job" {
			s.out.message(unknownField, "field", field)
			return nil
		}
	}
	return s.depot.eachChange(1, maxChange, func(c *change) (bool, error) {
		for _, j := range c.Jobs {
			if slices.Contains(terms, "job="+strings.ToLower(j.Name)) {
				s.out.record([]field{{"Job", j.Name}, {"Status", j.Status}, {"User", j.User}, {"Description", string(j.Desc)}})
			}
		}
		return !s.out.stopped, nil
	})
}

func seconds(t int64) string { return strconv.FormatInt(t, 10) }

// numbered adds an index to each key: records hold lists as numbered fields.
func numbered(i int, fields []field) []field {
	for k := range fields {
		fields[k].key += strconv.Itoa(i)
	}
	return fields
}
