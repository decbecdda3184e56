package p4

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/selection"
)

// Config configures a [ChangeFetcher].
type Config struct {
	// The p4 command: an absolute path, or a name looked up in PATH.
	Command string `yaml:"command" default:"p4" required:"the p4 command"`
	// Server address as in P4PORT, such as ssl:perforce:1666.
	Port string `yaml:"port" required:"the server's address as in P4PORT"`
	// Account that reads changes: a standard user. It needs read permission on the allowed
	// paths, list permission on //... and no other.
	User string `yaml:"user" required:"the account that reads changes"`
	// Charset of text that is not UTF-8, such as windows-1252, windows-1251, shift_jis, euc-kr
	// or gb18030. Lines in any other charset count as not read. Empty: the charset is a guess.
	CharsetFallback string `yaml:"charset_fallback"`
	// Ticket of the account. Unset if the account needs none, or if the file
	// p4tickets in the state directory holds one.
	Ticket secret.Value `yaml:"ticket"`
	// Fingerprint of the server's key, as p4d -Gf prints it. Empty: the keys of the file
	// p4trust in the state directory are trusted.
	Fingerprint string `yaml:"fingerprint"`
	// Paths that may be reviewed: trees such as //depot/project/... and single files. No
	// other path is read. The characters @ # % * of a name are written %40 %23 %25 %2A.
	Allowed []string `yaml:"allowed_paths" required:"the paths that may be reviewed, such as //depot/project/..."`
	// Exceptions from the allowed paths.
	Embargoed []string `yaml:"embargoed_paths"`
	// Selection selects the allowed files that are reviewed. It cannot select a
	// file that may hold secrets. Default the built-in lists.
	Selection selection.Config
	// Skip lists the changes that are not reviewed. Default none.
	Skip SkipRules
	// How to handle a change with both allowed and denied or hidden files: deny_whole reads
	// none of them, review_allowed_only the allowed ones (docs/paths.md).
	MixedChanges MixedChanges `yaml:"mixed_changes" default:"deny_whole" oneof:"deny_whole review_allowed_only"`
	// Who is notified of a restricted changelist: author, because others may not have access to
	// its files, or everyone.
	RestrictedTo RestrictedTo `yaml:"restricted_to" default:"author" oneof:"author everyone"`
	// Reviewed returns what the reviews of changelists say; those without a review are missing.
	// Content that was integrated without edits is not reviewed if the changes that
	// made it were. Default: none was.
	Reviewed func(context.Context, []review.Changelist) (map[review.Changelist]review.Credit, error)
	// Changelists up to this number count as reviewed when their content is branched
	// or merged without edits. Set it to the newest changelist at the installation.
	ReviewedUpTo review.Changelist `yaml:"reviewed_up_to"`
	// Private directory of p4 for tickets and server fingerprints.
	StateDir string `yaml:"state_dir" default:"/var/lib/criticizer/p4" required:"a directory that only this process may enter"`
	// Timeout of one p4 command.
	Timeout time.Duration `yaml:"timeout" default:"60s" check:"positive"`
	// Largest file that is read, before or after the change.
	MaxFileBytes config.Size `yaml:"max_file_bytes" default:"1MB" check:"positive"`
	// Real authors of changes that a service user submits for others, such as a git connector.
	// Each entry is the user, in which * matches any text, and a regular expression for the
	// description or a job. Its group in parentheses is the author's p4 user or mail address:
	// git-* ^Author: .*<(.+)>$
	Authors []string `yaml:"authors"`
	// Owners are recipients by path. Default none.
	Owners []string
	// Rules are the paths of files with rule packs of teams, as in Allowed. Default none.
	Rules []string
	// Context bounds the code around a change that is read with it. Default: none.
	Context pack.Limits

	// limits are constants that tests change.
	limits limits
}

type limits struct {
	files int // of a change that are read, source first
	// changeBytes bounds the sum of the new sizes of the files that are read, and diffBytes
	// the sum of the diffs, which is larger if large files are replaced.
	changeBytes, diffBytes int64
	outputBytes            int64         // of one command
	killGrace              time.Duration // between SIGTERM and SIGKILL
}

// contextLines is the number of unchanged lines around a change in a diff.
const contextLines = 10

// MixedChanges is a policy for changes with allowed and denied files.
type MixedChanges string

const (
	// DenyWhole reads nothing of such a change.
	DenyWhole MixedChanges = "deny_whole"
	// ReviewAllowedOnly reads the description and the allowed files, and lists the
	// names of the denied files.
	ReviewAllowedOnly MixedChanges = "review_allowed_only"
)

// RestrictedTo is who is notified of a restricted changelist.
type RestrictedTo string

// Everyone also notifies subscribers, owners and channels.
const Everyone RestrictedTo = "everyone"

// plainValue matches a value that p4 accepts as a setting and cannot read as an
// option or a list.
var plainValue = regexp.MustCompile(`^[^-\x00-\x20\x7f][^\x00-\x20\x7f]*$`)

var fingerprint = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}$`)

// Check implements the checks of package config.
func (c Config) Check(p *config.Problems) {
	for field, value := range map[string]string{"port": c.Port, "user": c.User} {
		p.Add(value != "" && !plainValue.MatchString(value), field, "is not one word without a dash before it", "write it as p4 info does")
	}
	p.Add(c.Fingerprint != "" && !fingerprint.MatchString(c.Fingerprint), "fingerprint", "is not the fingerprint of a key", "write the 20 pairs of digits that p4d -Gf prints")
	scheme, _, _ := strings.Cut(strings.ToLower(c.Port), ":")
	p.Add(scheme == "rsh" || scheme == "jsh", "port", "makes p4 run a shell command", "write the address of a server")
	_, err := htmlindex.Get(cmp.Or(c.CharsetFallback, defaultCharset))
	p.Add(err != nil, "charset_fallback", fmt.Sprintf("%q is not a charset", c.CharsetFallback), "write one such as windows-1252, windows-1251, shift_jis, euc-kr or gb18030")
}

// address matches P4PORT: [protocol:][host:]port.
var address = regexp.MustCompile(`(?s)^(?:(ssl|tcp)(?:4|6|46|64)?:)?(?:(.*):)?[^:]*$`)

// Connections returns the connection to the server. The default protocol is tcp, the default
// host this one. The ticket does not count as a secret here: every connection needs it, so
// allow_cleartext would have no effect.
func (c Config) Connections() []config.Connection {
	parts := address.FindStringSubmatch(c.Port)
	host := strings.Trim(cmp.Or(parts[2], "localhost"), "[]")
	return []config.Connection{{Field: "port", Host: host, Encrypted: parts[1] == "ssl", Hint: "write ssl:host:port"}}
}
