package settings

import (
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// P4 configures the access to Perforce, and how much of a change is read.
type P4 struct {
	// The p4 command: an absolute path, or a name looked up in PATH.
	Command string `yaml:"command" default:"p4" required:"the p4 command"`
	// Server address as in P4PORT, such as ssl:perforce:1666.
	Port string `yaml:"port" required:"the server's address as in P4PORT"`
	// Account that reads changes. It needs read permission on the allowed paths,
	// and list permission on //... .
	User string `yaml:"user" required:"the account that reads changes"`
	// P4CHARSET, for a server in unicode mode.
	Charset string `yaml:"charset"`
	// Charset of text that is not UTF-8 and whose charset is not detected, such as
	// windows-1251, shift_jis, euc-kr or gb18030 (docs/perforce.md).
	CharsetFallback string `yaml:"charset_fallback" default:"windows-1252"`
	// Paths that may be reviewed, such as //depot/project/... No other path is
	// read.
	AllowedPaths []string `yaml:"allowed_paths" required:"the paths that may be reviewed, such as //depot/project/..."`
	// Exceptions from the allowed paths.
	EmbargoedPaths []string `yaml:"embargoed_paths"`
	// How a change is handled of which only some files are allowed: deny_whole
	// reads none of them, also if a file may be hidden from the account;
	// review_allowed_only reads the allowed ones, and the report names the others;
	// if a file may be hidden, the outcome is partial.
	MixedChanges string `yaml:"mixed_changes" default:"deny_whole" oneof:"deny_whole review_allowed_only"`
	// Timeout of one p4 command.
	Timeout time.Duration `yaml:"timeout" default:"60s" check:"positive"`
	// Largest number of files of a change that are read; the report names the
	// others as not reviewed.
	MaxFiles int `yaml:"max_files" default:"2000" check:"positive"`
	// Largest file that is read.
	MaxFileBytes config.Size `yaml:"max_file_bytes" default:"1MB" check:"positive"`
	// Largest sum of the files of a change that are read.
	MaxChangeBytes config.Size `yaml:"max_change_bytes" default:"20MB" check:"positive"`
	// Number of unchanged lines around a change in the prompt.
	ContextLines int `yaml:"context_lines" default:"10" check:"positive"`
	// How often the server is asked for changelists that no trigger announced
	// (docs/trigger.md). 0: never.
	CatchUpEvery time.Duration `yaml:"catch_up_every" default:"10m"`
	// Changelists up to this number count as reviewed when their content is branched
	// or merged without edits. Set it to the newest changelist at the installation.
	ReviewedUpTo int `yaml:"reviewed_up_to"`
	// Private directory of p4 for tickets and server fingerprints.
	StateDir string `yaml:"state_dir" default:"/var/lib/criticizer/p4" required:"a directory that only this process may enter"`
	// Ticket of the account. Unset if the account needs none, or if the file
	// p4tickets in the state directory holds one.
	Ticket secret.Value `yaml:"ticket"`
}

// Connections returns the connection to the server. It reads P4PORT as
// [protocol:][host:]port. The default protocol is tcp, the default host this one. The ticket
// does not count as a secret here: every connection needs it, so allow_cleartext would have
// no effect.
func (c P4) Connections() []config.Connection {
	protocol, address, found := strings.Cut(c.Port, ":")
	encrypted := found && slices.Contains([]string{"ssl", "ssl4", "ssl6", "ssl46", "ssl64"}, protocol)
	if !found || !encrypted && !slices.Contains([]string{"tcp", "tcp4", "tcp6", "tcp46", "tcp64"}, protocol) {
		address = c.Port
	}
	if !strings.Contains(address, ":") {
		address = "localhost:" + address
	}
	return []config.Connection{{Field: "port", Host: config.HostOf(address), Encrypted: encrypted, Hint: "write ssl:host:port"}}
}

// Context configures the code around a change that is read with it (docs/context.md).
type Context struct {
	// Longest function or type around a change that is shown whole, in lines.
	MaxLines int `yaml:"max_lines" default:"120" check:"positive"`
	// Largest number of files outside of the change that are read for it. 0: none.
	MaxFiles int `yaml:"max_files" default:"20"`
	// Largest sum of these files.
	MaxBytes config.Size `yaml:"max_bytes" default:"400KB" check:"positive"`
	// Largest context of one change, in tokens. 0: no context.
	MaxTokens int `yaml:"max_tokens" default:"30000"`
}

// Skip configures the changes that are not reviewed (docs/selection.md). Their
// content is not read, and no one is notified.
type Skip struct {
	// p4 users whose changes are skipped; * matches any text, as in build-*.
	Users []string `yaml:"users"`
	// Clients (workspaces) whose changes are skipped; * matches any text.
	Clients []string `yaml:"clients"`
	// Depot paths, such as //depot/generated/...; a change is skipped if they
	// contain all its files.
	Paths []string `yaml:"paths"`
	// Words in a description that skip the change, such as #noreview. Every author
	// can write them.
	DescriptionTags []string `yaml:"description_tags"`
}

// Selection configures which of the allowed files are reviewed (docs/selection.md).
// Patterns are globs, such as //depot/project/legacy/** or *.pb.go. A pattern
// without // matches the end of a path.
type Selection struct {
	// Files that are not reviewed, besides vendored, lock and generated files.
	Exclude []string `yaml:"exclude"`
	// Vendored, lock and generated files that are reviewed. Files that may hold
	// secrets are never read.
	Include []string `yaml:"include"`
}
