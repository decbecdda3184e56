package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
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

// ticketLife is the remaining life of every ticket.
const ticketLife = 12 * time.Hour

func (s *session) login(flags, []string) error {
	s.out.record([]field{{"User", s.settings["P4USER"]}, {"TicketExpiration", seconds(int64(ticketLife.Seconds()))}})
	return nil
}

// protects prints a table of one line.
func (s *session) protects(flags, []string) error {
	s.out.record([]field{{"perm", s.permission()}, {"host", "*"}, {"user", "*"}, {"line", "1"}, {"depotFile", "//..."}})
	return nil
}

func (s *session) users(_ flags, names []string) error {
	for _, name := range names {
		if u := s.depot.user(name); u != nil {
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
	for _, name := range s.depot.subscribers(c) {
		u := s.depot.user(name)
		s.out.record([]field{{"user", u.Name}, {"email", u.Email}, {"name", u.FullName}})
	}
	return nil
}

// maxPreviousAuthors is the number of reviewers of a change of a depot without
// subscriptions.
const maxPreviousAuthors = 3

// subscribers returns the names of the users whose subscriptions match a file of
// the change. In a depot without subscriptions, such as git, they are the authors
// of the revisions before the change.
func (d *depot) subscribers(c *change) []string {
	var names []string
	hasSubscriptions := false
	for _, u := range d.users {
		hasSubscriptions = hasSubscriptions || len(u.Reviews) > 0
		if slices.ContainsFunc(u.Reviews, func(pattern string) bool {
			return slices.ContainsFunc(c.Files, func(r *revision) bool { return d.matches(pattern, r.Path) })
		}) {
			names = append(names, u.Name)
		}
	}
	if !hasSubscriptions {
		names = d.previousAuthors(c)
	}
	slices.Sort(names)
	return names
}

func (d *depot) previousAuthors(c *change) []string {
	files := map[string]int{} // by author of the revision before
	for _, f := range c.Files {
		if before := d.before(f); before != nil {
			if author := d.change(before.Change).User; author != c.User {
				files[author]++
			}
		}
	}
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(x, y string) int { return files[y] - files[x] })
	return names[:min(len(names), maxPreviousAuthors)]
}
