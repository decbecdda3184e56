package review

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Change is one changelist as it was fetched. Its texts are raw: they may
// hold secrets and must not leave the fetch stage unencrypted.
type Change struct {
	Number Changelist `json:"number"`
	// OldNumber is the number it had before it was submitted, 0 if that is the same.
	OldNumber Changelist `json:"old_number,omitempty"`
	// Shelved is set if it is a shelf. The Revision of each of its files is then
	// the one that it is based on.
	Shelved     bool      `json:"shelved,omitempty"`
	User        string    `json:"user"`
	Client      string    `json:"client"`
	Time        time.Time `json:"time"`
	Description string    `json:"description"`
	Jobs        []string  `json:"jobs,omitempty"`
	Files       []File    `json:"files"`
	// Empty says why there are no files; it is empty if there are some.
	Empty EmptyReason `json:"empty,omitempty"`
	// SkippedBy is the rule by which the change is not to be reviewed, empty if
	// none says so. Nothing else of a skipped change is filled in but who made it
	// when.
	SkippedBy SkipRule `json:"skipped_by,omitempty"`
	// Recipients are the people who may be told, not yet filtered by policy.
	Recipients []Recipient `json:"recipients"`
	// Unresolved names users who should be told but have no usable address.
	Unresolved []string `json:"unresolved,omitempty"`
}

// An EmptyReason says why a change has no files. It is shown to people and is
// wire format.
type EmptyReason string

// The reasons for which a change has no files.
const (
	EmptyRestricted EmptyReason = "the changelist is restricted"
	EmptyNoFiles    EmptyReason = "the changelist has no files, or none the service may see"
)

// A SkipRule says why a change is not reviewed at all. It is shown to people and
// is wire format.
type SkipRule string

// The rules by which changes are skipped.
const (
	SkipRuleUser   SkipRule = "the user is in skip.users"
	SkipRuleClient SkipRule = "the client is in skip.clients"
	SkipRulePaths  SkipRule = "all files are in skip.paths"
	SkipRuleTag    SkipRule = "the description has a tag of skip.description_tags"
	// SkipRuleGone is not configured: what was shelved is there no longer.
	SkipRuleGone SkipRule = "nothing is shelved there any more, or not on this server"
	// SkipRuleSame is not configured: a shelf was shelved again as it was.
	SkipRuleSame SkipRule = "the shelf is as it was reviewed before"
	// SkipRuleNewer is not configured: what was being reviewed is on the shelf no more.
	SkipRuleNewer SkipRule = "the changelist was shelved again before the review was over"
)

// A Content tells what a change makes of its files from what another one does.
type Content struct {
	Digest  string // as ContentDigest has it
	Shelved bool
	// OldNumber is the changelist's number before it was submitted, 0 if it kept it.
	OldNumber Changelist
}

// Content is what is compared of the change. Of one that may not be read that is
// nothing.
func (c Change) Content() Content {
	content := Content{Shelved: c.Shelved, OldNumber: c.OldNumber}
	if !c.Denied() {
		content.Digest = c.ContentDigest()
	}
	return content
}

// ContentDigest is the same for changes that make the same of the same files: it
// covers path, action, type and content of every file, and the revision it is
// based on, whatever the changes' numbers and descriptions. It is empty if the
// server did not tell all contents.
func (c Change) ContentDigest() string {
	var lines []string
	for _, f := range c.Files {
		gone := f.Action == ActionDelete || f.Action == ActionMoveDelete
		if f.Digest == "" && !gone {
			return ""
		}
		base := 0
		if f.Action == ActionEdit || f.Action == ActionIntegrate {
			if base = f.Revision; !c.Shelved {
				base--
			}
		}
		if gone {
			f.Digest = ""
		}
		lines = append(lines, fmt.Sprintf("%q %q %q %d %q", f.DepotPath, f.Action, f.Type, base, f.Digest))
	}
	if lines == nil {
		return ""
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// Denied reports whether no file of the change may be read.
func (c Change) Denied() bool {
	return len(c.Files) > 0 && !slices.ContainsFunc(c.Files, func(f File) bool { return f.Skipped != SkipNotAllowed })
}

// An Action is what a changelist did to a file, in the words of p4.
type Action string

// The actions p4 reports for submitted files.
const (
	ActionAdd        Action = "add"
	ActionEdit       Action = "edit"
	ActionDelete     Action = "delete"
	ActionBranch     Action = "branch"
	ActionIntegrate  Action = "integrate"
	ActionImport     Action = "import"
	ActionMoveAdd    Action = "move/add"
	ActionMoveDelete Action = "move/delete"
	ActionPurge      Action = "purge"
	ActionArchive    Action = "archive"
)

// A File is one file of a changelist with its difference to what it replaces.
type File struct {
	// DepotPath is decoded (%40 is @), so it can hold any byte a path can.
	DepotPath string `json:"depot_path"`
	Action    Action `json:"action"`
	Type      string `json:"type"`
	Revision  int    `json:"revision"`
	// FromPath and FromRevision name the source of a move, branch or
	// integration where p4 reports one.
	FromPath     string `json:"from_path,omitempty"`
	FromRevision int    `json:"from_revision,omitempty"`
	Size         int64  `json:"size"`
	Digest       string `json:"digest,omitempty"`
	// Diff is a unified diff without file headers, hunks only, LF between
	// lines; a CR that belongs to the file stays. Empty if Skipped is set or
	// nothing differs.
	Diff string `json:"diff,omitempty"`
	// Skipped says why the file has no diff, empty if it has one.
	Skipped SkipReason `json:"skipped,omitempty"`
}

// A SkipReason says why a file was not reviewed. It is shown to people and is
// wire format.
type SkipReason string

// The reasons for which a file is not reviewed.
const (
	SkipBinary       SkipReason = "binary"
	SkipDeleted      SkipReason = "deleted"
	SkipSymlink      SkipReason = "symbolic link"
	SkipPurged       SkipReason = "content is no longer on the server"
	SkipUnchanged    SkipReason = "content did not change"
	SkipTooLarge     SkipReason = "too large"
	SkipUnreadable   SkipReason = "content could not be read"
	SkipDenied       SkipReason = "no permission to read"
	SkipNotAllowed   SkipReason = "path not allowed"
	SkipOverBudget   SkipReason = "over the review's token budget"
	SkipOverDay      SkipReason = "over the token budget of the day"
	SkipNotDecodable SkipReason = "not decodable as text"
	SkipSecret       SkipReason = "may hold secrets, never read"
	SkipExcluded     SkipReason = "excluded by configuration"
	SkipVendored     SkipReason = "vendored"
	SkipLockFile     SkipReason = "lock file"
	SkipGenerated    SkipReason = "generated"
	SkipIntegrated   SkipReason = "integrated without edits"
	SkipLongLine     SkipReason = "lines too long to be shown whole"
	SkipOverLimit    SkipReason = "over the limits on one change"
)

// IsEmpty reports whether a file of the reason holds nothing that the change
// wrote, so that a review of the others is whole.
func (s SkipReason) IsEmpty() bool {
	return s == SkipDeleted || s == SkipUnchanged || s == SkipIntegrated
}

// A Recipient is a person who may be told about a change.
type Recipient struct {
	User    string `json:"user"`
	Address string `json:"address"`
	// Role says why: author, subscriber or owner.
	Role Role `json:"role"`
}

// A Role says why a recipient is told.
type Role string

// The roles of recipients. They are wire format.
const (
	RoleAuthor     Role = "author"
	RoleSubscriber Role = "subscriber"
	RoleOwner      Role = "owner"
	// RoleUnresolved marks a user who should be told but has no usable
	// address; the report names such users.
	RoleUnresolved Role = "unresolved"
)
