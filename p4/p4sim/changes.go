package main

import (
	"slices"
	"strconv"
	"strings"
)

// summaryLength is how many bytes of a description lists show.
const summaryLength = 31

func summary(desc string) string { return desc[:min(len(desc), summaryLength)] }

// changes lists changelists, newest first: for each file argument those that
// changed a file of it, without arguments all.
func (s *session) changes(f flags, args []string) error {
	if len(args) == 0 {
		args = []string{"//..."}
	}
	for _, arg := range args {
		spec, ok := parseFilespec(arg)
		if !ok {
			s.out.message(badRevision, arg)
			continue
		}
		left := f.limit()
		for _, c := range slices.Backward(s.depot.changes) {
			if left == 0 || c.Number < spec.low {
				break
			}
			if c.Number > spec.high || f["s"] != "" && f["s"] != c.status() || s.faults.lags(c.Number) ||
				spec.pattern != "//..." && !s.touches(c, spec.pattern) { // a pending change counts for all files alone
				continue
			}
			left--
			record := []field{{"change", strconv.Itoa(c.Number)}, {"time", seconds(c.Time)}, {"user", c.User}, {"status", c.status()}}
			if path := c.path(); path != "" {
				record = append(record, field{"path", path})
			}
			s.out.record(append(record, field{"desc", summary(c.Desc)}))
		}
	}
	return nil
}

// touches reports whether the change submitted a file of the pattern.
func (s *session) touches(c *change, pattern string) bool {
	return slices.ContainsFunc(c.Files, func(r *revision) bool { return s.depot.matches(pattern, r.Path) })
}

// visibleChange returns nil if there is no such change.
func (s *session) visibleChange(n int) *change {
	c := s.depot.change(n)
	if c == nil || !s.faults.lags(n) {
		return c
	}
	pending := *c // what a replica knows of the change before the submit or shelve
	pending.Pending, pending.Files, pending.Shelved = true, nil, nil
	return &pending
}

// describe reports changelists with their files, or with -S the files of the shelf. Only
// files on the server have a size and a digest; -s leaves out the source of a file.
func (s *session) describe(f flags, args []string) error {
	shelved := f["S"] != ""
	for _, arg := range args {
		n, _ := strconv.Atoi(arg)
		c := s.visibleChange(n)
		if c == nil {
			s.out.message(noSuchChange, arg)
			continue
		}
		record := []field{
			{"change", arg}, {"user", c.User}, {"client", c.User + "-ws"}, {"time", seconds(c.Time)},
			{"desc", c.Desc}, {"status", c.status()}, {"changeType", "public"},
		}
		files := c.Files
		switch path := c.path(); {
		case shelved:
			files, record = c.Shelved, append(record, field{"shelved", ""})
		case c.Pending:
			files = c.Opened
		case path != "":
			record = append(record, field{"path", path})
		}
		if c.OldNumber > 0 {
			record = append(record, field{"oldChange", strconv.Itoa(c.OldNumber)})
		}
		for i, j := range c.Jobs {
			record = append(record, field{"job" + strconv.Itoa(i), j.Name})
		}
		for i, r := range files {
			one, err := s.open(r)
			if err != nil {
				return err
			}
			fields := []field{{"depotFile", r.Path}, {"action", r.Action}, {"type", one.fileType}, {"rev", strconv.Itoa(r.Rev)}}
			if !r.deleted() && (!c.Pending || shelved) {
				fields = append(fields, field{"fileSize", one.size()}, field{"digest", one.digest()})
			}
			if r.From != "" && f["s"] == "" {
				fields = append(fields, field{"fromFile", r.From}, field{"fromRev", strconv.Itoa(r.FromRev)})
			}
			record = append(record, numbered(i, fields)...)
		}
		s.out.record(record)
	}
	return nil
}

// jobs reports the jobs that -e names, as Job=NAME|Job=NAME.
func (s *session) jobs(f flags, _ []string) error {
	terms := strings.Split(strings.ToLower(f["e"]), "|")
	for _, c := range slices.Backward(s.depot.changes) {
		for _, j := range c.Jobs {
			if slices.Contains(terms, "job="+strings.ToLower(j.Name)) {
				s.out.record([]field{{"Job", j.Name}, {"Description", j.Desc}})
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
