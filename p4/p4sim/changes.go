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
		args = []string{"//..."}
	}
	for _, arg := range args {
		if spec, ok := parseFilespec(arg); ok {
			s.listChanges(f, spec)
		} else {
			s.out.message(badRevision, arg)
		}
	}
	return nil
}

func (s *session) listChanges(f flags, spec filespec) {
	if limit := s.faults.find("limit"); limit != nil && spec.high < maxChange && spec.high-spec.low >= limit.Rows {
		s.out.message(maxScanRows, limit.Rows)
		return
	}
	left := f.limit()
	for _, c := range slices.Backward(s.depot.changes) {
		if left == 0 || c.Number < spec.low {
			return
		}
		if c.Number > spec.high || f["s"] != "" && f["s"] != c.status() || !s.touches(c, spec) || s.faults.lags(c.Number) != nil {
			continue
		}
		left--
		s.out.record(c.listed())
	}
}

// touches reports whether the change has a file of the pattern; a pending change
// counts for all files alone.
func (s *session) touches(c *change, spec filespec) bool {
	return spec.pattern == "//..." || slices.ContainsFunc(c.Files, func(r *revision) bool { return s.depot.matches(spec.pattern, r.Path) })
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

func summary(desc string) string { return desc[:min(len(desc), summaryLength)] }

// describe reports changelists with their files.
func (s *session) describe(f flags, args []string) error {
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || arg[0] == '+' {
			s.out.message(badChange, arg)
			continue
		}
		c := s.visibleChange(n)
		if c == nil {
			s.out.message(noSuchChange, arg)
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
func (s *session) visibleChange(n int) *change {
	c, lag := s.depot.change(n), s.faults.lags(n)
	switch {
	case c == nil || lag == nil:
		return c
	case lag.As == "":
		return nil
	}
	pending := *c // what a replica knows of the change before the submit or shelve
	pending.Pending, pending.Files, pending.Shelved = true, nil, nil
	return &pending
}

func (s *session) describeOne(f flags, c *change) error {
	record := []field{
		{"change", strconv.Itoa(c.Number)}, {"user", c.User}, {"client", c.Client}, {"time", seconds(c.Time)},
		{"desc", c.Desc}, {"status", c.status()}, {"changeType", "public"},
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
	for i, r := range c.revisions(f["S"] != "") {
		one, err := s.open(r)
		if err != nil {
			return err
		}
		record = append(record, numbered(i, one.described(f, c))...)
	}
	s.out.record(record)
	return nil
}

// revisions are the files that p4 describe lists, or with -S the files of the shelf.
func (c *change) revisions(shelved bool) []*revision {
	switch {
	case shelved:
		return c.Shelved
	case c.Pending:
		return c.Opened
	}
	return c.Files
}

// described are the fields of one file. Only files on the server have a size and a
// digest; -s leaves out the source of a file.
func (f *file) described(given flags, c *change) []field {
	fields := []field{
		{"depotFile", f.Path}, {"action", f.Action}, {"type", f.fileType}, {"rev", strconv.Itoa(f.Rev)},
	}
	if !f.deleted() && (!c.Pending || given["S"] != "") {
		fields = append(fields, field{"fileSize", f.size()}, field{"digest", f.digest()})
	}
	if f.From != "" && given["s"] == "" {
		fields = append(fields, field{"fromFile", f.From}, field{"fromRev", strconv.Itoa(f.FromRev)})
	}
	return fields
}

// jobs reports the jobs that -e names, as Job=NAME|Job=NAME.
func (s *session) jobs(f flags, _ []string) error {
	terms := strings.Split(strings.ToLower(f["e"]), "|")
	for _, term := range terms {
		if field, _, ok := strings.Cut(term, "="); !ok || field != "job" {
			s.out.message(unknownField, field)
			return nil
		}
	}
	for _, c := range slices.Backward(s.depot.changes) {
		for _, j := range c.Jobs {
			if slices.Contains(terms, "job="+strings.ToLower(j.Name)) {
				s.out.record([]field{{"Job", j.Name}, {"Status", j.Status}, {"User", j.User}, {"Description", j.Desc}})
			}
		}
	}
	return nil
}

func seconds(t int64) string { return strconv.FormatInt(t, 10) }

// numbered adds an index to each key: records hold lists as numbered fields.
func numbered(i int, fields []field) []field {
	for k := range fields {
		fields[k].key += strconv.Itoa(i)
	}
	return fields
}
