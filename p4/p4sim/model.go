package main

import (
	"encoding/json"
	"strings"
)

// raw is text that need not be UTF-8; JSON keeps every byte of it.
type raw string

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(r)) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *raw) UnmarshalJSON(b []byte) error {
	var bytes []byte
	err := json.Unmarshal(b, &bytes)
	*r = raw(bytes)
	return err
}

// A change is one changelist.
type change struct {
	Number  int
	User    string
	Client  string
	Time    int64 // seconds since 1970
	Desc    raw
	Pending bool `json:",omitempty"`
	// OldNumber is the number before the change was submitted, if that differs.
	OldNumber int `json:",omitempty"`
	// Files name the revisions a submitted change made.
	Files []ref `json:",omitempty"`
	// Opened are the files that are open in a pending change, Shelved those it
	// has on the server.
	Opened  []revision `json:",omitempty"`
	Shelved []revision `json:",omitempty"`
	// Jobs are those that the change fixes.
	Jobs []job `json:",omitempty"`
}

// A job is one that a change fixes.
type job struct {
	Name, User, Status string
	Desc               raw
}

// A ref names one revision of one depot file.
type ref struct {
	Path raw
	Rev  int
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
	dir, pattern := parent(string(c.Files[0].Path)), "*"
	for _, f := range c.Files[1:] {
		for !strings.HasPrefix(string(f.Path), dir) {
			dir = parent(strings.TrimSuffix(dir, "/"))
		}
	}
	for _, f := range c.Files {
		if parent(string(f.Path)) != dir {
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
	Path   raw
	Rev    int
	Change int
	Action string
	// Type is empty if the content and Exec determine it, as in git.
	Type string `json:",omitempty"`
	Exec bool   `json:",omitempty"`
	Time int64
	// Content is the key of the bytes; empty if there are none.
	Content string `json:",omitempty"`
	// From and FromRev name the source of a moved or branched file; Into and
	// IntoRev where a file was moved.
	From    raw `json:",omitempty"`
	FromRev int `json:",omitempty"`
	Into    raw `json:",omitempty"`
	IntoRev int `json:",omitempty"`
}

// deleted reports whether the revision has no content.
func (r *revision) deleted() bool {
	switch r.Action {
	case "delete", "move/delete", "purge", "archive":
		return true
	}
	return false
}

// next is the number after that of a file's newest revision, which may be nil.
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
	Reviews []string `json:",omitempty"`
}

// encodePath writes the characters that have a meaning in file arguments as every
// p4 command prints them.
func encodePath(path string) string { return pathEncoder.Replace(path) }

var pathEncoder = strings.NewReplacer("%", "%25", "@", "%40", "#", "%23", "*", "%2A")
