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

func (s *session) users(_ flags, names []string) error {
	for _, name := range names {
		u, err := s.depot.user(name)
		if err != nil {
			return err
		}
		if u == nil {
			s.out.message(noSuchUsers, "argc", name)
			continue
		}
		s.out.record([]field{{"User", u.Name}, {"FullName", u.FullName}, {"Email", u.Email}})
	}
	return nil
}

// reviews lists the users who subscribed to files of a change.
func (s *session) reviews(f flags, _ []string) error {
	n, _ := strconv.Atoi(f["c"])
	c, err := s.visibleChange(n)
	if err != nil {
		return err
	}
	if c == nil {
		s.out.message(noSuchChange, "change", "Change "+f["c"])
		return nil
	}
	names, err := s.depot.subscribers(c)
	if err != nil {
		return err
	}
	for _, name := range names {
		u, err := s.depot.user(name)
		if err != nil {
			return err
		}
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
func (d *depot) subscribers(c *change) ([]string, error) {
	var names []string
	hasSubscriptions := false
	err := d.tx.Bucket(bucketUsers).ForEach(func(key, value []byte) error {
		u, err := decode[user](value)
		if err != nil {
			return err
		}
		hasSubscriptions = hasSubscriptions || len(u.Reviews) > 0
		if u.subscribes(d.caseFold, c) {
			names = append(names, string(key))
		}
		return nil
	})
	if err != nil || hasSubscriptions {
		return names, err
	}
	return d.previousAuthors(c)
}

func (u *user) subscribes(fold caseFold, c *change) bool {
	return slices.ContainsFunc(u.Reviews, func(pattern string) bool {
		return slices.ContainsFunc(c.Files, func(r ref) bool { return fold.matches(pattern, string(r.Path)) })
	})
}

func (d *depot) previousAuthors(c *change) ([]string, error) {
	files := map[string]int{} // by author of the revision before
	for _, f := range c.Files {
		before, err := d.revision(f.Path, f.Rev-1)
		if err != nil {
			return nil, err
		}
		if before == nil {
			continue
		}
		previous, err := d.change(before.Change)
		if err != nil {
			return nil, err
		}
		if previous.User != c.User {
			files[previous.User]++
		}
	}
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(x, y string) int { return files[y] - files[x] })
	names = names[:min(len(names), maxPreviousAuthors)]
	slices.Sort(names)
	return names, nil
}
