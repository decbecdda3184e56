package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// filelog lists the history of files, also under the names they had before.
func (s *session) filelog(f flags, args []string) error {
	for _, arg := range args {
		spec, bad := s.parseFilespec(arg)
		if bad != nil {
			s.out.fail(*bad)
			continue
		}
		spec.asRange()
		found := false
		err := s.depot.eachFile(spec.pattern, func(revs []revision) (bool, error) {
			revs = slices.DeleteFunc(revs, func(r revision) bool { return !spec.contains(&r) })
			found = found || len(revs) > 0
			return !s.out.stopped, s.history(f, revs)
		})
		if err != nil {
			return err
		}
		if !found {
			s.sayMissing(spec)
		}
	}
	return nil
}

func (s *session) history(f flags, revs []revision) error {
	left := math.MaxInt
	if f.has("m") {
		left = f.number("m")
	}
	for len(revs) > 0 && left > 0 {
		slices.Reverse(revs)
		revs = revs[:min(left, len(revs))]
		left -= len(revs)
		if err := s.listHistory(f, revs); err != nil {
			return err
		}
		oldest := revs[len(revs)-1]
		if oldest.Action != "move/add" || oldest.From == "" || f.has("1") {
			return nil
		}
		var err error
		if revs, err = s.revisionsUpTo(oldest.From, oldest.FromRev); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) revisionsUpTo(path raw, last int) ([]revision, error) {
	var revs []revision
	for n := 1; n <= last; n++ {
		r, err := s.depot.revision(path, n)
		if err != nil {
			return nil, err
		}
		if r != nil {
			revs = append(revs, *r)
		}
	}
	return revs, nil
}

func (s *session) listHistory(f flags, revs []revision) error {
	record := []field{{"depotFile", string(revs[0].Path)}}
	if !s.out.tagged {
		s.out.say(filelogData, string(revs[0].Path))
	}
	for i := range revs {
		one, err := s.open(&revs[i])
		if err != nil {
			return err
		}
		c, err := s.visibleChange(one.Change)
		if err != nil {
			return err
		}
		if c == nil {
			c = &change{Number: one.Change}
		}
		if !s.out.tagged {
			s.sayRevision(f, one, c)
			continue
		}
		record = append(record, numbered(i, revisionFields(f, one, c))...)
		record = append(record, integrationFields(i, one)...)
	}
	if s.out.tagged {
		s.out.record(record)
	}
	return nil
}

func revisionFields(f flags, one *file, c *change) []field {
	fields := []field{
		{"rev", revNumber(&one.revision)}, {"change", strconv.Itoa(one.Change)}, {"action", one.Action},
		{"type", one.kind}, {"time", seconds(one.Time)}, {"user", c.User}, {"client", c.Client},
	}
	if !one.deleted() {
		fields = append(fields, field{"fileSize", one.size()}, field{"digest", one.digest()})
	}
	return append(fields, field{"desc", cut(f, string(c.Desc))})
}

func (s *session) sayRevision(f flags, one *file, c *change) {
	layout := "2006/01/02"
	if f.has("t") {
		layout = dateTime
	}
	s.out.say(filelogRev, hashRev(&one.revision), "change "+strconv.Itoa(one.Change), one.Action,
		formatTime(s.loc, layout, one.Time), c.User, c.Client, one.kind, describing(f, c))
	if how, path, start, end := integration(one); how != "" {
		if start != "#none" {
			end = start + "," + end
		}
		s.out.say(filelogInteg, how, path, end)
	}
}

func integrationFields(i int, one *file) []field {
	how, path, start, end := integration(one)
	if how == "" {
		return nil
	}
	key := strconv.Itoa(i) + ",0"
	return []field{{"how" + key, how}, {"file" + key, path}, {"srev" + key, start}, {"erev" + key, end}}
}

// integration says how a revision is related to another file.
func integration(one *file) (how, path, start, end string) {
	switch {
	case one.From != "":
		verb := "moved"
		if !strings.HasPrefix(one.Action, "move/") {
			verb = "branch"
		}
		return verb + " from", string(one.From), "#none", "#" + strconv.Itoa(one.FromRev)
	case one.Into != "":
		return "moved into", string(one.Into), "#none", "#" + strconv.Itoa(one.IntoRev)
	}
	return "", "", "", ""
}
