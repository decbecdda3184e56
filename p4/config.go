package p4

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

// Config configures a [ChangeFetcher].
type Config struct {
	// Command is the p4 executable: an absolute path, or a bare name that New
	// looks up in PATH. Default "p4".
	Command string
	// Port is the server's address as in P4PORT, such as "ssl:perforce:1666".
	// Required.
	Port string
	// User is the account that reads: a standard user with read permission on
	// the allowed paths, list permission on //... and no other one. Required.
	User string
	// Charset is P4CHARSET. Default: utf8 for a server in unicode mode, else none.
	Charset string
	// CharsetFallback is the charset of text that is not UTF-8 and whose charset is not
	// detected. Default windows-1252.
	CharsetFallback string
	// Ticket is the account's ticket. Unset: the account needs none, or the
	// file p4tickets in StateDir holds one.
	Ticket secret.Value
	// Allowed lists the paths that may be read: trees like //depot/projA/... and
	// single files. The characters @ # % * of a name are written %40 %23 %25 %2A, as
	// p4 prints them. Required.
	Allowed []string
	// Embargoed lists paths that may not be read although they are allowed. Default none.
	Embargoed []string
	// Selection selects the allowed files that are reviewed. It cannot select a
	// file that may hold secrets. Default the built-in lists.
	Selection selection.Config
	// Skip lists the changes that are not reviewed. Default none.
	Skip SkipRules
	// MixedChanges is the policy for changes with allowed and denied files. Default
	// DenyWhole.
	MixedChanges MixedChanges
	// Reviewed returns which changelists have a review that read all their files.
	// Content that was integrated without edits is not reviewed if the changes that
	// made it were. Default: none was.
	Reviewed func(context.Context, []review.Changelist) (map[review.Changelist]bool, error)
	// ReviewedUpTo is the changelist up to which all count as reviewed. Default 0.
	ReviewedUpTo review.Changelist
	// StateDir is p4's HOME, a private directory: mode 0700, made if missing. Its
	// file p4trust holds the fingerprints of ssl servers. Required.
	StateDir string
	// Timeout bounds each p4 command. Default 60s.
	Timeout time.Duration
	// MaxFiles is the number of files of a change whose content is read: source
	// before tests, configuration and documents. Default 2,000.
	MaxFiles int
	// MaxFileBytes is the largest content that is read, before or after the
	// change. Default 1 MB.
	MaxFileBytes int64
	// MaxChangeBytes bounds the sum of the new sizes of the files that are read.
	// Default 20 MB.
	MaxChangeBytes int64
	// Rules are the paths of files with rule packs of teams, as in Allowed. Default none.
	Rules []string
	// ContextLines is the number of unchanged lines around a change. Default 10.
	ContextLines int
	// Context bounds the code around a change that is read with it. Default: none.
	Context pack.Limits

	// Constants that tests change. maxDiffBytes bounds the sum of the diffs, which
	// exceeds MaxChangeBytes if large files are replaced; killGrace is the time
	// between SIGTERM and SIGKILL.
	killGrace      time.Duration
	maxDiffBytes   int64
	maxOutputBytes int64 // of one command
}

// MixedChanges is a policy for changes with allowed and denied files.
type MixedChanges string

const (
	// DenyWhole reads nothing of such a change.
	DenyWhole MixedChanges = "deny_whole"
	// ReviewAllowedOnly reads the description and the allowed files, and lists the
	// names of the denied files.
	ReviewAllowedOnly MixedChanges = "review_allowed_only"
)

func (c Config) withDefaults() Config {
	c.Command = cmp.Or(c.Command, "p4")
	c.MixedChanges = cmp.Or(c.MixedChanges, DenyWhole)
	c.CharsetFallback = cmp.Or(c.CharsetFallback, defaultCharset)
	c.Timeout = cmp.Or(c.Timeout, 60*time.Second)
	c.MaxFiles = cmp.Or(c.MaxFiles, 2000)
	c.MaxFileBytes = cmp.Or(c.MaxFileBytes, 1e6)
	c.MaxChangeBytes = cmp.Or(c.MaxChangeBytes, 20e6)
	c.ContextLines = cmp.Or(c.ContextLines, 10)
	c.killGrace = cmp.Or(c.killGrace, 5*time.Second)
	c.maxDiffBytes = cmp.Or(c.maxDiffBytes, 30e6)
	c.maxOutputBytes = cmp.Or(c.maxOutputBytes, 100e6)
	return c
}

// plainValue matches a value that p4 accepts as a setting and cannot read as an
// option or a list.
var plainValue = regexp.MustCompile(`^[^-\x00-\x20\x7f][^\x00-\x20\x7f]*$`)

func (c Config) validate() error {
	for _, v := range []struct{ name, value string }{{"port", c.Port}, {"user", c.User}, {"charset", cmp.Or(c.Charset, "utf8")}} {
		if !plainValue.MatchString(v.value) {
			return fmt.Errorf("%s %q: want a value without blanks that does not begin with a dash", v.name, v.value)
		}
	}
	if scheme, _, _ := strings.Cut(strings.ToLower(c.Port), ":"); scheme == "rsh" || scheme == "jsh" {
		return errors.New("port begins with rsh or jsh, which make p4 run a shell command: give the address of a server")
	}
	if _, err := htmlindex.Get(c.CharsetFallback); err != nil {
		return fmt.Errorf("charset fallback %q is not a charset: give one such as windows-1252, windows-1251, shift_jis, euc-kr or gb18030", c.CharsetFallback)
	}
	if c.Timeout < 0 || c.MaxFiles < 0 || c.MaxFileBytes < 0 || c.MaxChangeBytes < 0 || c.ContextLines < 0 ||
		min(c.Context.Lines, c.Context.Files, int(c.Context.Bytes), c.Context.Tokens) < 0 {
		return errors.New("a timeout or limit is negative: leave it out for its default")
	}
	if c.MixedChanges != DenyWhole && c.MixedChanges != ReviewAllowedOnly {
		return fmt.Errorf("policy for mixed changes %q: want %s or %s", c.MixedChanges, DenyWhole, ReviewAllowedOnly)
	}
	return nil
}
