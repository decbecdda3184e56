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

// maxPreviousAuthors is the number of reviewers of a change of a depot without
// subscriptions.
const maxPreviousAuthors = 3

// reviews lists the users who subscribed to files of a change. In a depot without
// subscriptions, such as git, they are the authors of the revisions before the change.
func (s *session) reviews(f flags, _ []string) error {
	n, _ := strconv.Atoi(f["c"])
	c := s.visibleChange(n)
	if c == nil {
		s.out.message(noSuchChange, f["c"])
		return nil
	}
	var names []string
	hasSubscriptions := false
	for _, u := range s.depot.users {
		hasSubscriptions = hasSubscriptions || len(u.Reviews) > 0
		if slices.ContainsFunc(u.Reviews, func(pattern string) bool { return s.touches(c, pattern) }) {
			names = append(names, u.Name)
		}
	}
	if !hasSubscriptions {
		files := map[string]int{} // by author of the revision before
		for _, r := range c.Files {
			if before := s.depot.before(r); before != nil {
				if author := s.depot.change(before.Change).User; author != c.User {
					files[author]++
				}
			}
		}
		names = slices.Sorted(maps.Keys(files))
		slices.SortStableFunc(names, func(x, y string) int { return files[y] - files[x] })
		names = names[:min(len(names), maxPreviousAuthors)]
	}
	slices.Sort(names)
	for _, name := range names {
		u, _ := s.depot.user(name)
		s.out.record([]field{{"user", u.Name}, {"email", u.Email}, {"name", u.FullName}})
	}
	return nil
}
