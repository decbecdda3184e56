package p4

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review/selection"
)

// Config says which server is read, as whom, and how much of a change.
type Config struct {
	// Command is the p4 executable: an absolute path, or a bare name that is
	// looked up in PATH once, by New. Default "p4".
	Command string
	// Port is the server's address as in P4PORT, such as "ssl:perforce:1666".
	// Required.
	Port string
	// User is the account that reads, a standard user with read permission on
	// the allowed paths and nothing more. Required.
	User string
	// Charset is P4CHARSET. Default: utf8 if the server is in unicode mode, none if not.
	Charset string
	// Ticket is the account's ticket. Unset: the account needs none, or the
	// file p4tickets in StateDir holds one.
	Ticket secret.Value
	// Allowed lists what may be read: trees like //depot/projA/... and single
	// files. The characters @ # % * of a name are written %40 %23 %25 %2A, as
	// p4 prints them. Required (security 9.1).
	Allowed []string
	// Embargoed lists what may not be read although it is allowed. Default none.
	Embargoed []string
	// Selection says which of the allowed files are not worth a review. What may
	// hold secrets is never read, whatever it says. Default the built-in lists.
	Selection selection.Config
	// Skip says which changes are not reviewed at all. Default none.
	Skip SkipRules
	// MixedChanges says what becomes of a change of which some files are
	// allowed. Default DenyWhole.
	MixedChanges MixedChanges
	// StateDir is p4's HOME, for nobody else: mode 0700, made if missing. The
	// fingerprints of ssl servers are kept there in the file p4trust. Required.
	StateDir string
	// Timeout bounds each p4 command. Default 60s.
	Timeout time.Duration
	// KillGrace is how long a command that was told to stop may take before it
	// is killed. Default 5s.
	KillGrace time.Duration
	// MaxFiles is the number of files of a change whose content is read, source
	// before tests, configuration and documents; the others are listed and
	// skipped as over the limit. Default 2,000.
	MaxFiles int
	// MaxFileBytes is the largest content that is read, before or after the
	// change. Default 1 MB.
	MaxFileBytes int64
	// MaxChangeBytes bounds the sum of the new sizes of the files that are
	// read; files beyond it are skipped as over the limit. Default 20 MB.
	MaxChangeBytes int64
	// MaxDiffBytes bounds the sum of the diffs, which is more than redaction takes
	// if large files are written anew; files beyond it are skipped as over the
	// limit. Default 30 MB.
	MaxDiffBytes int64
	// MaxOutputBytes bounds what one command may print. Default 100 MB.
	MaxOutputBytes int64
	// ContextLines is the number of unchanged lines shown around a change. Default 10.
	ContextLines int
}

// MixedChanges is a policy for changes of which some files are allowed and some
// are not.
type MixedChanges string

// The policies.
const (
	// DenyWhole reads nothing of such a change.
	DenyWhole MixedChanges = "deny_whole"
	// ReviewAllowedOnly reads the files that are allowed. The description is read
	// and all files are named, those left out as not allowed.
	ReviewAllowedOnly MixedChanges = "review_allowed_only"
)

func (c Config) withDefaults() Config {
	c.Command = cmp.Or(c.Command, "p4")
	c.MixedChanges = cmp.Or(c.MixedChanges, DenyWhole)
	c.Timeout = cmp.Or(c.Timeout, 60*time.Second)
	c.KillGrace = cmp.Or(c.KillGrace, 5*time.Second)
	c.MaxFiles = cmp.Or(c.MaxFiles, 2000)
	c.MaxFileBytes = cmp.Or(c.MaxFileBytes, 1e6)
	c.MaxChangeBytes = cmp.Or(c.MaxChangeBytes, 20e6)
	c.MaxDiffBytes = cmp.Or(c.MaxDiffBytes, 30e6)
	c.MaxOutputBytes = cmp.Or(c.MaxOutputBytes, 100e6)
	c.ContextLines = cmp.Or(c.ContextLines, 10)
	return c
}

// plainValue is what may be handed to p4 as a setting: no option, no control
// character, no list.
var plainValue = regexp.MustCompile(`^[^-\x00-\x20\x7f][^\x00-\x20\x7f]*$`)

func (c Config) validate() error {
	for _, v := range []struct{ name, value string }{{"port", c.Port}, {"user", c.User}, {"charset", cmp.Or(c.Charset, "utf8")}} {
		if !plainValue.MatchString(v.value) {
			return fmt.Errorf("%s %q: want a value without blanks that does not begin with a dash", v.name, v.value)
		}
	}
	if strings.HasPrefix(c.Port, "rsh:") || strings.HasPrefix(c.Port, "jsh:") {
		return errors.New("port begins with rsh: or jsh:, which makes p4 run a shell command: name a server instead (security 9.2)")
	}
	if c.Timeout < 0 || c.KillGrace < 0 || c.MaxFiles < 0 || c.MaxFileBytes < 0 || c.MaxChangeBytes < 0 || c.MaxDiffBytes < 0 ||
		c.MaxOutputBytes < 0 || c.ContextLines < 0 {
		return errors.New("a timeout or limit is negative: leave it out for its default")
	}
	if c.MixedChanges != DenyWhole && c.MixedChanges != ReviewAllowedOnly {
		return fmt.Errorf("policy for mixed changes %q: want %s or %s", c.MixedChanges, DenyWhole, ReviewAllowedOnly)
	}
	if !filepath.IsAbs(c.StateDir) {
		return fmt.Errorf("state directory %q is not an absolute path", c.StateDir)
	}
	return nil
}

// executable resolves Command to an absolute path, once, so that nothing that
// happens to PATH or the working directory later changes what is run (security 9.2).
func (c Config) executable() (string, error) {
	if strings.ContainsRune(c.Command, filepath.Separator) && !filepath.IsAbs(c.Command) {
		return "", fmt.Errorf("command %q is a relative path: give an absolute one or a bare name", c.Command)
	}
	path, err := exec.LookPath(c.Command)
	if err != nil {
		return "", fmt.Errorf("find the p4 command: %w: install it, or give its path", err)
	}
	return filepath.Abs(path)
}

// makeStateDir makes the private directory and refuses one that others can enter.
func (c Config) makeStateDir() error {
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the state directory of p4: %w", err)
	}
	info, err := os.Stat(c.StateDir)
	if err != nil {
		return fmt.Errorf("read the state directory of p4: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the state directory of p4, %s, is open to others: chmod 700 it", c.StateDir)
	}
	if foreign(info, os.Geteuid()) {
		return fmt.Errorf("the state directory of p4, %s, belongs to another user: chown it to that of the workers", c.StateDir)
	}
	return nil
}

// foreign reports whether a private directory keeps the user out.
func foreign(dir os.FileInfo, user int) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	return ok && user != 0 && int(stat.Uid) != user
}
