package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
)

// A depot answers queries from the history of a source.
type depot struct {
	*history
	git *gitSource // nil for a .txtar file
	// mailDomain, if set, replaces the domain of mail addresses.
	mailDomain string
	caseFold
}

// A history is all that a source holds.
type history struct {
	changes  []*change              // by number
	files    map[string][]*revision // by path, from the first on
	users    map[string]user
	contents map[string][]byte // by the Content of the revisions; git has its own
}

func newHistory() *history {
	return &history{files: map[string][]*revision{}, users: map[string]user{}, contents: map[string][]byte{}}
}

// addChange adds a change that made the given revisions.
func (h *history) addChange(c *change, revs []*revision) {
	slices.SortFunc(revs, func(x, y *revision) int { return strings.Compare(x.Path, y.Path) })
	for _, r := range revs {
		r.Change, r.Time, r.Rev = c.Number, c.Time, h.head(r.Path).next()
		h.files[r.Path] = append(h.files[r.Path], r)
	}
	c.Files = revs
	h.changes = append(h.changes, c)
}

// addUser adds a user, or replaces the user of the same name.
func (h *history) addUser(u user) { h.users[u.Name] = u }

// head is the newest revision of a file, nil if there is none.
func (h *history) head(path string) *revision {
	revs := h.files[path]
	if len(revs) == 0 {
		return nil
	}
	return revs[len(revs)-1]
}

// The values of P4SIM_MAIL_DOMAIN. The domains of git authors are replaced by
// default: the authors are real people, and a test must not write to them.
const (
	defaultMailDomain = "example.test"
	keepMailDomain    = "keep"
)

// openDepot reads the depot that P4SIM_DEPOT names.
func (s settings) openDepot() (*depot, error) {
	if s["P4SIM_DEPOT"] == "" {
		return nil, errors.New("no depot: set P4SIM_DEPOT to a git repository or a .txtar file")
	}
	path, err := filepath.Abs(s["P4SIM_DEPOT"])
	if err != nil {
		return nil, fmt.Errorf("find the depot: %w", err)
	}
	d := &depot{mailDomain: s["P4SIM_MAIL_DOMAIN"], caseFold: s["P4SIM_CASE"] == "insensitive"}
	if strings.HasSuffix(path, ".txtar") {
		d.history, err = readTxtar(path)
	} else {
		var dir string
		if dir, err = s.stateDir(); err != nil {
			return nil, err
		}
		d.mailDomain = cmp.Or(d.mailDomain, defaultMailDomain)
		var repository *git.Repository
		if repository, err = git.Open(path); err == nil {
			d.git = &gitSource{repository}
			d.history, err = d.git.load(path, dir)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open depot %s: %w", path, err), d.close())
	}
	if d.mailDomain == keepMailDomain {
		d.mailDomain = ""
	}
	slices.SortStableFunc(d.changes, func(x, y *change) int { return cmp.Compare(x.Number, y.Number) })
	return d, nil
}

func (d *depot) close() error {
	if d.git == nil {
		return nil
	}
	return d.git.Close()
}

// content reads the bytes that the Content of a revision names.
func (d *depot) content(key string) ([]byte, error) {
	if d.git != nil {
		return d.git.Blob(key)
	}
	content, ok := d.contents[key]
	if !ok {
		return nil, errors.New("the depot has no content " + key)
	}
	return content, nil
}

// change returns nil if there is no such change.
func (d *depot) change(n int) *change {
	i, found := slices.BinarySearchFunc(d.changes, n, func(c *change, n int) int { return cmp.Compare(c.Number, n) })
	if !found {
		return nil
	}
	return d.changes[i]
}

// before is the revision before another one of its file, nil if there is none.
func (d *depot) before(r *revision) *revision {
	revs := d.files[r.Path]
	if i := slices.IndexFunc(revs, func(one *revision) bool { return one.Rev == r.Rev-1 }); i >= 0 {
		return revs[i]
	}
	return nil
}

// matching returns the paths of the files that match a pattern, in order.
func (d *depot) matching(pattern string) []string {
	if _, ok := d.files[pattern]; ok && !bool(d.caseFold) {
		return []string{pattern}
	}
	paths := slices.Sorted(maps.Keys(d.files))
	return slices.DeleteFunc(paths, func(path string) bool { return !d.matches(pattern, path) })
}

// user returns a user as p4 users prints it, nil if there is none of the name.
func (d *depot) user(name string) *user {
	u, ok := d.users[name]
	if !ok {
		return nil
	}
	if d.mailDomain != "" {
		u.Email = u.Name + "@" + d.mailDomain
	}
	return &u
}
