package main

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // Perforce's digests are MD5
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
)

// A history is all that a source holds.
type history struct {
	changes  []*change              // by number
	files    map[string][]*revision // by path, from the first on
	users    map[string]user
	contents map[string][]byte // by the Content of the revisions; git has its own
}

// A change is one changelist.
type change struct {
	Number  int
	User    string
	Time    int64 // seconds since 1970
	Desc    string
	Pending bool
	// OldNumber is the number before the change was submitted, if that differs.
	OldNumber int
	// Files are the revisions that a submitted change made. Opened are the files that are
	// open in a pending change, Shelved those it has on the server.
	Files, Opened, Shelved []*revision
	Jobs                   []job // that the change fixes
}

// A job is one that a change fixes.
type job struct{ Name, Desc string }

// A user is one account. Reviews are the depot paths the user subscribed to.
type user struct {
	Name, Email, FullName string
	Reviews               []string
}

// A revision is one state of one depot file.
type revision struct {
	Path   string // as p4 writes it, %40 for @
	Rev    int
	Change int
	Action string
	// Type is empty if the content and Exec determine it, as in git.
	Type string
	Exec bool
	// Content is the key of the bytes; empty if there are none.
	Content string
	// From and FromRev name the source of a moved or branched file.
	From    string
	FromRev int
}

// deleted reports whether the revision has no content.
func (r *revision) deleted() bool {
	return slices.Contains([]string{"delete", "move/delete", "purge", "archive"}, r.Action)
}

func (c *change) status() string {
	if c.Pending {
		return "pending"
	}
	return "submitted"
}

// path is the deepest directory that holds all files, as a pattern; empty if
// there are none.
func (c *change) path() string {
	if len(c.Files) == 0 {
		return ""
	}
	dir, pattern := parent(c.Files[0].Path), "*"
	for _, f := range c.Files[1:] {
		for !strings.HasPrefix(f.Path, dir) {
			dir = parent(strings.TrimSuffix(dir, "/"))
		}
	}
	for _, f := range c.Files {
		if parent(f.Path) != dir {
			pattern = "..."
		}
	}
	return dir + pattern
}

// parent is the directory of a path, with its final slash; // above the depots.
func parent(path string) string { return path[:strings.LastIndexByte(path, '/')+1] }

// encodePath writes the characters that have a meaning in file arguments as every
// p4 command prints them.
func encodePath(path string) string { return pathEncoder.Replace(path) }

var pathEncoder = strings.NewReplacer("%", "%25", "@", "%40", "#", "%23", "*", "%2A")

func newHistory() *history {
	return &history{files: map[string][]*revision{}, users: map[string]user{}, contents: map[string][]byte{}}
}

// addChange adds a change that made the given revisions.
func (h *history) addChange(c *change, revs []*revision) {
	slices.SortFunc(revs, func(x, y *revision) int { return strings.Compare(x.Path, y.Path) })
	for _, r := range revs {
		r.Change, r.Rev = c.Number, h.next(r.Path)
		h.files[r.Path] = append(h.files[r.Path], r)
	}
	c.Files = revs
	h.changes = append(h.changes, c)
}

// head is the newest revision of a file, nil if there is none.
func (h *history) head(path string) *revision {
	revs := h.files[path]
	if len(revs) == 0 {
		return nil
	}
	return revs[len(revs)-1]
}

// next is the number of the next revision of a file.
func (h *history) next(path string) int {
	if head := h.head(path); head != nil {
		return head.Rev + 1
	}
	return 1
}

// change returns nil if there is no such change.
func (h *history) change(n int) *change {
	i, found := slices.BinarySearchFunc(h.changes, n, func(c *change, n int) int { return cmp.Compare(c.Number, n) })
	if !found {
		return nil
	}
	return h.changes[i]
}

// before is the revision before another one of its file, nil if there is none.
func (h *history) before(r *revision) *revision {
	revs := h.files[r.Path]
	if i := slices.IndexFunc(revs, func(one *revision) bool { return one.Rev == r.Rev-1 }); i >= 0 {
		return revs[i]
	}
	return nil
}

// A depot answers queries from the history of a source.
type depot struct {
	*history
	git        *git.Repository // nil for a .txtar file
	mailDomain string          // replaces the domain of mail addresses unless it is empty
	ignoreCase bool
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
	d := &depot{mailDomain: s["P4SIM_MAIL_DOMAIN"], ignoreCase: s["P4SIM_CASE"] == "insensitive"}
	if strings.HasSuffix(path, ".txtar") {
		d.history, err = readTxtar(path)
	} else {
		var dir string
		dir, err = s.stateDir()
		d.mailDomain = cmp.Or(d.mailDomain, defaultMailDomain)
		if err == nil {
			d.git, err = git.Open(path)
		}
		if err == nil {
			d.history, err = readGit(d.git, path, dir)
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

// matches reports whether a depot path is the pattern, or in the tree that a
// pattern with "..." at its end names, or in the folder of a pattern with "/*".
func (d *depot) matches(pattern, path string) bool {
	if folder, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasSuffix(folder, "/") {
		return strings.LastIndexByte(path, '/') == len(folder)-1 && d.matches(folder+"...", path)
	}
	tree, isTree := strings.CutSuffix(pattern, "...")
	if isTree {
		path = path[:min(len(tree), len(path))]
	}
	return path == tree || d.ignoreCase && strings.EqualFold(path, tree)
}

// matching returns the paths of the files that match a pattern, in order.
func (d *depot) matching(pattern string) []string {
	if _, ok := d.files[pattern]; ok && !d.ignoreCase {
		return []string{pattern}
	}
	paths := slices.Sorted(maps.Keys(d.files))
	return slices.DeleteFunc(paths, func(path string) bool { return !d.matches(pattern, path) })
}

// user returns a user as p4 users prints it.
func (d *depot) user(name string) (u user, ok bool) {
	u, ok = d.users[name]
	if d.mailDomain != "" {
		u.Email = u.Name + "@" + d.mailDomain
	}
	return u, ok
}

// A file is a revision with its content, as p4 print would send it.
type file struct {
	*revision
	fileType string
	content  []byte
}

func (f *file) size() string   { return strconv.Itoa(len(f.content)) }
func (f *file) digest() string { return fmt.Sprintf("%X", md5.Sum(f.content)) } //nolint:gosec // as above

// open reads a revision's content and determines its type, as p4 add would choose it. A
// deleted file has the type that it had before.
func (s *session) open(r *revision) (*file, error) {
	f := &file{revision: r, fileType: r.Type}
	if r.deleted() {
		if before := s.depot.before(r); f.fileType == "" && before != nil {
			opened, err := s.open(before)
			if err != nil {
				return nil, err
			}
			f.fileType = opened.fileType
		}
		return f, nil
	}
	var err error
	switch content, ok := s.depot.contents[r.Content]; {
	case ok:
		f.content = content
	case r.Content != "":
		if f.content, err = s.depot.git.Blob(r.Content, math.MaxInt); err != nil {
			return nil, fmt.Errorf("read %s#%d: %w", r.Path, r.Rev, err)
		}
	}
	if f.fileType == "" {
		f.fileType = "text"
		if bytes.IndexByte(f.content[:min(len(f.content), 8000)], 0) >= 0 {
			f.fileType = "binary"
		}
		if r.Exec {
			f.fileType += "+x"
		}
	}
	return f, nil
}
