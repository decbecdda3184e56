package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxSubscribers bounds whom a git depot has review a change.
const maxSubscribers = 3

func (s *session) users(f flags, args []string) error {
	all, err := s.depot.users()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	for _, pattern := range args {
		if !slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) {
			s.out.say(noSuchUsers, pattern)
		}
	}
	if len(args) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool {
			return !slices.ContainsFunc(args, func(pattern string) bool { return matches(pattern, name) })
		})
	}
	if f.has("m") {
		names = names[:min(f.number("m"), len(names))]
	}
	for _, name := range names {
		u := all[name]
		s.report(userRecord(u), usersData, u.Name, u.Email, u.FullName, formatTime(s.loc, "2006/01/02", u.Access))
	}
	return nil
}

func userRecord(u *user) []field {
	return []field{
		{"User", u.Name}, {"Update", seconds(u.Update)}, {"Access", seconds(u.Access)},
		{"FullName", u.FullName}, {"Email", u.Email}, {"Type", "standard"},
	}
}

// reviews lists who subscribed to the files of a change, or to the files named.
func (s *session) reviews(f flags, args []string) error {
	var files []revision
	if f.has("c") {
		c, err := s.visibleChange(f.number("c"))
		if err != nil {
			return err
		}
		if c == nil {
			s.out.say(noSuchChange, "Change "+f.value("c"))
			return nil
		}
		if files, err = s.depot.revisions(c); err != nil {
			return err
		}
	}
	if err := s.selected(args, false, func(r *revision) error {
		files = append(files, *r)
		return nil
	}); err != nil {
		return err
	}
	names, err := s.subscribers(files)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.sayReviewer(name); err != nil {
			return err
		}
	}
	return nil
}

// sayReviewer prefers how a subscription names its user.
func (s *session) sayReviewer(name string) error {
	u, ok := s.depot.reviewers[name]
	if !ok {
		var err error
		if u, err = s.depot.user(name); err != nil || u == nil {
			return err
		}
	}
	s.report([]field{{"user", u.Name}, {"email", u.Email}, {"name", u.FullName}}, reviewsData, u.Name, u.Email, u.FullName)
	return nil
}

// subscribers are the users whose subscriptions cover one of the files. Where
// nobody subscribed to anything, as in git, they are who changed most of the
// files before.
func (s *session) subscribers(files []revision) ([]string, error) {
	all, err := s.depot.users()
	if err != nil {
		return nil, err
	}
	var chosen []string
	anybody := false
	for _, u := range all {
		anybody = anybody || len(u.Reviews) > 0
		if u.subscribes(files) {
			chosen = append(chosen, u.Name)
		}
	}
	if !anybody {
		return s.previousAuthors(files)
	}
	slices.Sort(chosen)
	return chosen, nil
}

func (u *user) subscribes(files []revision) bool {
	return slices.ContainsFunc(u.Reviews, func(pattern string) bool {
		return slices.ContainsFunc(files, func(r revision) bool { return matches(pattern, string(r.Path)) })
	})
}

func (s *session) previousAuthors(files []revision) ([]string, error) {
	count := map[string]int{}
	authors := map[int]string{} // by change: a large one is long to read
	for _, r := range files {
		by, err := s.authorOf(r.Path, r.Rev, authors)
		if err != nil {
			return nil, err
		}
		before, err := s.authorOf(r.Path, r.Rev-1, authors)
		if err != nil {
			return nil, err
		}
		if before != "" && before != by {
			count[before]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(x, y string) int {
		return cmp.Or(count[y]-count[x], strings.Compare(x, y))
	})
	names = names[:min(len(names), maxSubscribers)]
	slices.Sort(names)
	return names, nil
}

// authorOf adds to authors whom it had to look up.
func (s *session) authorOf(path raw, rev int, authors map[int]string) (string, error) {
	r, err := s.depot.revision(path, rev)
	if r == nil || err != nil {
		return "", err
	}
	if name, known := authors[r.Change]; known {
		return name, nil
	}
	c, err := s.depot.change(r.Change)
	if c == nil || err != nil {
		return "", err
	}
	authors[r.Change] = c.User
	return c.User, nil
}

// review lists the submitted changes from a number on, each with its author.
func (s *session) review(f flags, _ []string) error {
	low := max(f.number("c"), 1)
	return s.depot.eachChange(low, noBound.change, true, func(c *change) (bool, error) {
		if c.Pending {
			return true, nil
		}
		u, err := s.depot.user(c.User)
		if err != nil {
			return false, err
		}
		if u == nil {
			u = &user{Name: c.User}
		}
		s.report([]field{
			{"change", strconv.Itoa(c.Number)}, {"user", u.Name}, {"email", u.Email}, {"name", u.FullName},
		}, reviewData, changeName(c.Number), u.Name, u.Email, u.FullName)
		return !s.out.stopped, nil
	})
}
