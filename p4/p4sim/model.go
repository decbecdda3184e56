package main

import "strings"

// A change is one changelist.
type change struct {
	Number  int
	User    string
	Client  string
	Time    int64 // seconds since 1970
	Desc    string
	Pending bool
	// OldNumber is the number before the change was submitted, if that differs.
	OldNumber int
	// Files are the revisions that a submitted change made.
	Files []*revision
	// Opened are the files that are open in a pending change, Shelved those it
	// has on the server.
	Opened, Shelved []*revision
	// Jobs are those that the change fixes.
	Jobs []job
}

// A job is one that a change fixes.
type job struct{ Name, User, Status, Desc string }

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
func parent(path string) string {
	return path[:strings.LastIndexByte(path, '/')+1]
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
	Time int64
	// Content is the key of the bytes; empty if there are none.
	Content string
	// From and FromRev name the source of a moved or branched file; Into and
	// IntoRev where a file was moved.
	From    string
	FromRev int
	Into    string
	IntoRev int
}

// deleted reports whether the revision has no content.
func (r *revision) deleted() bool {
	switch r.Action {
	case "delete", "move/delete", "purge", "archive":
		return true
	}
	return false
}

// next returns the number of the revision after r, the newest of a file; r may be nil.
func (r *revision) next() int {
	if r == nil {
		return 1
	}
	return r.Rev + 1
}

// A user is one account.
type user struct {
	Name     string
	Email    string
	FullName string
	// Reviews are the depot paths the user subscribed to.
	Reviews []string
}

// encodePath writes the characters that have a meaning in file arguments as every
// p4 command prints them.
func encodePath(path string) string { return pathEncoder.Replace(path) }

var pathEncoder = strings.NewReplacer("%", "%25", "@", "%40", "#", "%23", "*", "%2A")
