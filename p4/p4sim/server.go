package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

func (s *session) info(flags, []string) error {
	services := "standard"
	if s.faults.find("lag") != nil {
		services = "replica"
	}
	s.out.record([]field{
		{"userName", s.settings["P4USER"]}, {"serverAddress", s.settings["P4PORT"]},
		{"serverVersion", "P4D/LINUX26X86_64/2023.2/2535420 (2024/01/05)"}, {"ServerID", "p4sim"},
		{"serverServices", cmp.Or(s.settings["P4SIM_SERVICES"], services)}, {"caseHandling", cmp.Or(s.settings["P4SIM_CASE"], "sensitive")},
	})
	return nil
}

// login reports a ticket of twelve hours.
func (s *session) login(flags, []string) error {
	s.out.record([]field{{"User", s.settings["P4USER"]}, {"TicketExpiration", "43200"}})
	return nil
}

// permission is what every user has for all files.
func (s settings) permission() string { return cmp.Or(s["P4SIM_PERMISSION"], "super") }

// protects prints a table of one line.
func (s *session) protects(flags, []string) error {
	s.out.record([]field{{"perm", s.permission()}, {"host", "*"}, {"user", "*"}, {"line", "1"}, {"depotFile", "//..."}})
	return nil
}

func (s *session) users(_ flags, names []string) error {
	for _, name := range names {
		if u, ok := s.depot.user(name); ok {
			s.out.record([]field{{"User", u.Name}, {"FullName", u.FullName}, {"Email", u.Email}})
		} else {
			s.out.message(noSuchUsers, name)
		}
	}
	return nil
}

// reviews lists the users who subscribed to files of a change.
func (s *session) reviews(f flags, _ []string) error {
	n, _ := strconv.Atoi(f["c"])
	c := s.visibleChange(n)
	if c == nil {
		s.out.message(noSuchChange, f["c"])
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.depot.users)) {
		u, _ := s.depot.user(name)
		if slices.ContainsFunc(u.Reviews, func(pattern string) bool { return s.touches(c, pattern) }) {
			s.out.record([]field{{"user", u.Name}, {"email", u.Email}, {"name", u.FullName}})
		}
	}
	return nil
}
