package p4

import (
	"bytes"
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// protectionLine encodes a line of p4 protects.
func protectionLine(perm, host, path string) []byte {
	fields := []string{"perm", perm, "host", host, "user", "reader", "line", "1", "depotFile", strings.TrimPrefix(path, "-")}
	if path[0] == '-' {
		fields = append(fields, "unmap", "")
	}
	return stat(fields...)
}

// The list of files is complete only if the account may list all files, which p4
// describe does not tell. Otherwise the description may be about hidden files.
func TestChangeWithHiddenFilesIsDenied(t *testing.T) {
	t.Parallel()
	all := [][]byte{protectionLine("list", "*", "//...")}
	for name, tt := range map[string]struct {
		path       string
		protects   [][]byte
		policy     MixedChanges
		unreadable bool // the change has only files that may not be listed
		denied     bool
		gap        bool // the review says that files may be hidden
	}{
		"all files may be listed":                    {protects: all},
		"the common path of the visible file":        {protects: all, path: "//depot/pub/*"},
		"a file in another directory":                {protects: all, path: "//depot/...", denied: true},
		"a file in another depot":                    {protects: all, path: "//...", denied: true},
		"a file below":                               {protects: all, path: "//depot/pub/...", denied: true},
		"the server may write the path in two cases": {protects: all, path: "//depot/PUB/*"},
		"an exclusion before":                        {protects: [][]byte{protectionLine("list", "*", "-//depot/zeus/..."), all[0]}},
		"an exclusion after":                         {protects: [][]byte{all[0], protectionLine("list", "*", "-//depot/zeus/...")}, denied: true},
		"an exclusion of every right":                {protects: [][]byte{all[0], protectionLine("write", "*", "-//depot/zeus/...")}, denied: true},
		"an exclusion for one host":                  {protects: [][]byte{all[0], protectionLine("list", "10.0.0.1", "-//depot/zeus/...")}, denied: true},
		"an exclusion of reading":                    {protects: [][]byte{all[0], protectionLine("=read", "*", "-//depot/zeus/...")}},
		"a higher permission":                        {protects: [][]byte{protectionLine("write", "*", "//...")}},
		"a right is not a permission":                {protects: [][]byte{protectionLine("=read", "*", "//...")}, denied: true},
		"one tree":                                   {protects: [][]byte{protectionLine("read", "*", "//depot/...")}, denied: true},
		"from one host only":                         {protects: [][]byte{protectionLine("list", "10.0.0.1", "//...")}, denied: true},
		"no protections for the account":             {protects: nil, denied: true},
		"no protections table":                       {protects: [][]byte{message(3, 35, "Protections table is empty.\n")}},
		"the server refuses":                         {protects: [][]byte{message(3, 6, "You don't have permission for this operation.\n")}, denied: true},
		"allowed files are reviewed":                 {protects: nil, policy: ReviewAllowedOnly, gap: true},
		"no gap if all files may be listed":          {protects: all, policy: ReviewAllowedOnly},
		"no visible files":                           {protects: all, unreadable: true, denied: true},
		"no visible files under the other policy":    {protects: all, unreadable: true, policy: ReviewAllowedOnly, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := newFake(t)
			f.reply("info -s", stat("caseHandling", "insensitive"))
			f.reply("protects", tt.protects...)
			var revs []rev
			if !tt.unreadable {
				revs = []rev{{path: "//depot/pub/a.c", rev: 1, action: "add", data: "x\n"}}
			}
			f.submitted(12, revs...)
			f.describes(12, []string{"desc", "Zeus: the new key layout\n", "path", tt.path}, revs...)
			f.reply("reviews -c 12", stat("user", "bob", "email", "bob@example.com"))
			change, err := f.fetcher(slog.New(slog.NewJSONHandler(&log, nil)), func(c *Config) {
				c.Allowed, c.MixedChanges = []string{"//depot/pub/..."}, cmp.Or(tt.policy, c.MixedChanges)
			}).Read(t.Context(), 12, review.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if change.Denied() != tt.denied || (change.Description == "") != tt.denied || (len(change.Recipients) == 1) != tt.denied {
				t.Errorf("change = %+v, want denied %t", change, tt.denied)
			}
			if slices.Contains(change.Gaps, review.GapHidden) != tt.gap {
				t.Errorf("gaps: %v", change.Gaps)
			}
			if events := logged(t, &log, "security event"); (len(events) == 1) != tt.denied {
				t.Errorf("security events: %v", events)
			}
		})
	}
}

// The common path of files in several directories is compared with theirs.
func TestCommonPathOfManyFiles(t *testing.T) {
	t.Parallel()
	for root, want := range map[string]bool{
		"//depot/a/...": false, "//depot/a/*": false, "//depot/a/b/...": false, "//depot/...": true, "//...": true, "": false,
	} {
		x := &fetch{server: &server{info: ServerInfo{CaseHandling: "sensitive"}}}
		x.root = root
		for _, path := range []string{"//depot/a/b/c/1", "//depot/a/b/2", "//depot/a/x/3"} {
			x.files = append(x.files, &file{path: path})
		}
		if got := x.exceeds(); got != want {
			t.Errorf("%q: hidden files %t, want %t", root, got, want)
		}
	}
}
