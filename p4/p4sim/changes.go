package main

import (
	"math"
	"strconv"
	"strings"
)

// The lengths to which -L and the default cut descriptions, in bytes.
const (
	summaryLength = 31
	longLength    = 250
)

// changes lists changelists: for each file argument those that touched it,
// without one all.
func (s *session) changes(f flags, args []string) error {
	if len(args) == 0 {
		return s.listChanges(f, &filespec{high: noBound})
	}
	for _, arg := range args {
		spec, bad := s.parseFilespec(arg)
		if bad != nil {
			s.out.fail(*bad)
			continue
		}
		spec.asRange()
		if err := s.listChanges(f, spec); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) listChanges(f flags, spec *filespec) error {
	left := math.MaxInt
	if f.has("m") {
		left = f.number("m")
	}
	low := max(spec.low.change, f.number("e"), 1)
	return s.depot.eachChange(low, spec.high.change, f.has("r"), func(c *change) (bool, error) {
		if left == 0 {
			return false, nil
		}
		if !wanted(f, c) || !s.touches(c, spec) || s.faults.lags(c.Number) {
			return true, nil
		}
		left--
		c, err := s.visibleChange(c.Number)
		if err == nil && c != nil {
			s.listChange(f, c)
		}
		return !s.out.stopped, err
	})
}

// wanted applies the filters that are not about files.
func wanted(f flags, c *change) bool {
	if f.has("u") && f.value("u") != c.User || f.has("c") && f.value("c") != c.Client {
		return false
	}
	switch f.value("s") {
	case "":
		return true
	case "shelved":
		return len(c.Shelved) > 0
	}
	return f.value("s") == c.status()
}

// touches reports whether a submitted change made a revision in the range.
func (s *session) touches(c *change, spec *filespec) bool {
	if spec.pattern == "" {
		return true
	}
	for _, file := range c.Files {
		r := revision{Path: file.Path, Rev: file.Rev, Change: c.Number, Time: c.Time}
		if spec.contains(&r) && matches(spec.pattern, string(file.Path)) && !s.depot.hides(string(file.Path)) {
			return true
		}
	}
	return false
}

func (s *session) listChange(f flags, c *change) {
	if s.out.tagged {
		s.out.record(changeRecord(f, c))
		return
	}
	layout := "2006/01/02"
	if f.has("t") {
		layout = dateTime
	}
	line := changesData
	if c.Pending {
		line = changesDataPending
	}
	s.out.say(line, changeName(c.Number), formatTime(s.loc, layout, c.Time), c.User, c.Client, describing(f, c))
}

func changeRecord(f flags, c *change) []field {
	record := []field{
		{"change", strconv.Itoa(c.Number)}, {"time", seconds(c.Time)}, {"user", c.User}, {"client", c.Client},
		{"status", c.status()}, {"changeType", c.changeType()},
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
	return append(record, field{"desc", cut(f, string(c.Desc))})
}

// cut shortens a description as the flags ask.
func cut(f flags, desc string) string {
	switch {
	case f.has("l"):
		return desc
	case f.has("L"):
		return desc[:min(len(desc), longLength)]
	}
	return desc[:min(len(desc), summaryLength)]
}

// describing is the description as a plain report adds it to a line: quoted
// and on that line, or below it.
func describing(f flags, c *change) string {
	desc := cut(f, string(c.Desc))
	if f.has("l") || f.has("L") {
		return indented(desc)
	}
	return " '" + strings.ReplaceAll(desc, "\n", " ") + "'"
}
