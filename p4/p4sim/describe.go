package main

import (
	"strconv"
	"strings"
)

func (s *session) describe(f flags, args []string) error {
	for _, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || strings.HasPrefix(arg, "+") {
			s.out.say(badChange, arg)
			continue
		}
		c, err := s.visibleChange(n)
		if err != nil {
			return err
		}
		if c == nil {
			s.out.say(noSuchChange, "Change "+arg)
			continue
		}
		if err := s.describeOne(f, c); err != nil {
			return err
		}
	}
	return nil
}

// visibleChange is the change as the user may see it: of a restricted one of
// somebody else nothing but that it is there. Nil if there is none, or if a
// fault says that the server has not got it yet.
func (s *session) visibleChange(n int) (*change, error) {
	if s.faults.lags(n) {
		return nil, nil
	}
	c, err := s.depot.change(n)
	if c == nil || err != nil {
		return nil, err
	}
	if c.Restricted && c.User != s.user() {
		c.Desc = "<description: restricted, no permission to view>\n"
		c.Files, c.Opened, c.Shelved, c.Jobs = nil, nil, nil, nil
	}
	c.Desc = s.faults.spoil(c.Desc)
	return c, nil
}

func (s *session) describeOne(f flags, c *change) error {
	revs, err := s.describedRevisions(f, c)
	if err != nil {
		return err
	}
	if limit := f.number("m"); limit > 0 {
		revs = revs[:min(limit, len(revs))]
	}
	if s.out.tagged {
		return s.describeRecord(f, c, revs)
	}
	return s.describeText(f, c, revs)
}

func (s *session) describedRevisions(f flags, c *change) ([]revision, error) {
	switch {
	case f.has("S"):
		return c.Shelved, nil
	case c.Pending:
		return c.Opened, nil
	}
	return s.depot.revisions(c)
}

func (s *session) describeRecord(f flags, c *change, revs []revision) error {
	record := []field{
		{"change", strconv.Itoa(c.Number)}, {"user", c.User}, {"client", c.Client},
		{"time", seconds(c.Time)}, {"desc", string(c.Desc)},
		{"status", c.status()}, {"changeType", c.changeType()},
	}
	switch path := c.path(); {
	case f.has("S"):
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
		record = append(record, numbered(i, describedFile(f, c, one))...)
	}
	s.out.record(record)
	return nil
}

// describedFile are the fields of one file. Only files on the server have a
// size and a digest; -s also leaves out where a file came from.
func describedFile(f flags, c *change, one *file) []field {
	fields := []field{
		{"depotFile", string(one.Path)}, {"action", one.Action}, {"type", one.kind}, {"rev", revNumber(&one.revision)},
	}
	if !one.deleted() && (!c.Pending || f.has("S")) {
		fields = append(fields, field{"fileSize", one.size()}, field{"digest", one.digest()})
	}
	if one.From != "" && !f.has("s") {
		fields = append(fields, field{"fromFile", string(one.From)}, field{"fromRev", strconv.Itoa(one.FromRev)})
	}
	return fields
}

func revNumber(r *revision) string {
	if r.Rev == 0 {
		return "none"
	}
	return strconv.Itoa(r.Rev)
}

func hashRev(r *revision) string { return "#" + revNumber(r) }

func (s *session) describeText(f flags, c *change, revs []revision) error {
	head, list := describeChange, describeAffected
	if c.Pending {
		head = describeChangePending
	}
	if f.has("S") {
		list = describeShelved
	}
	s.out.say(head, changeName(c.Number), c.User, c.Client, formatTime(s.loc, dateTime, c.Time), indented(string(c.Desc)))
	s.describeJobs(c)
	s.out.say(list)
	for i := range revs {
		s.out.say(describeData, string(revs[i].Path), hashRev(&revs[i]), revs[i].Action)
	}
	s.describeMoves(revs)
	if !f.has("s") && (!c.Pending || f.has("S")) {
		s.out.say(describeDifferences)
		for i := range revs {
			if err := s.describeDiff(f, &revs[i]); err != nil {
				return err
			}
		}
	}
	s.out.say(describeEmpty)
	return nil
}

func (s *session) describeJobs(c *change) {
	if len(c.Jobs) > 0 {
		s.out.say(describeFixed)
	}
	for _, j := range c.Jobs {
		s.out.say(jobDescription, j.Name, formatTime(s.loc, "2006/01/02", j.Time), j.User, j.Status, indented(string(j.Desc)))
	}
}

func (s *session) describeMoves(revs []revision) {
	titled := false
	for i := range revs {
		r := &revs[i]
		if r.Action != "move/add" || r.From == "" {
			continue
		}
		if !titled {
			s.out.say(describeMovedFiles)
			titled = true
		}
		s.out.say(describeMove, string(r.Path), hashRev(r), string(r.From), "#"+strconv.Itoa(r.FromRev))
	}
}

// describeDiff shows what an edit changed; files that came or went are listed
// only, added ones shown with -a.
func (s *session) describeDiff(f flags, r *revision) error {
	var previous *revision
	var err error
	switch r.Action {
	case "edit", "integrate":
		if previous, err = s.depot.revision(r.Path, revisionBefore(r)); err != nil || previous == nil {
			return err
		}
	case "add", "branch", "import", "move/add":
		if !f.has("a") {
			return nil
		}
	default:
		return nil
	}
	after, err := s.open(r)
	if err != nil {
		return err
	}
	before := &file{kind: after.kind}
	if previous != nil {
		if before, err = s.open(previous); err != nil {
			return err
		}
	}
	types := []string{after.kind}
	if before.kind != after.kind {
		types = []string{before.kind, after.kind}
	}
	s.out.say(describeDiff, append([]string{string(r.Path), hashRev(r)}, types...)...)
	s.diff(before, after, parseDiffFlags(f["d"]))
	return nil
}

// revisionBefore is what a file was edited from. A shelved file has the number
// of the revision it is based on.
func revisionBefore(r *revision) int {
	if r.Change == 0 {
		return r.Rev
	}
	return r.Rev - 1
}

// diff shows the difference between two files; of binary ones only that there is one.
func (s *session) diff(before, after *file, o diffOptions) {
	if before.binary() || after.binary() {
		s.out.say(filesDiffer)
		return
	}
	s.out.text(diffText(before.content, after.content, o), false)
}

func changeName(n int) string { return "Change " + strconv.Itoa(n) }

func seconds(t int64) string { return strconv.FormatInt(t, 10) }

// indented is a description below its headline: each line after a tab.
func indented(desc string) string {
	var b strings.Builder
	b.WriteString("\n\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(desc, "\n"), "\n") {
		b.WriteString("\t" + line + "\n")
	}
	return b.String()
}

// numbered adds an index to each key, for the records that hold lists.
func numbered(i int, fields []field) []field {
	for k := range fields {
		fields[k].key += strconv.Itoa(i)
	}
	return fields
}
