package review

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Change is a fetched changelist. Its texts are raw: they may contain secrets and
// must not leave the fetch stage unencrypted.
type Change struct {
	Number Changelist `json:"number"`
	// OldNumber is its number before the submit, 0 if it is the same.
	OldNumber Changelist `json:"old_number,omitempty"`
	// Shelved is set for a shelf. The Revision of a shelved file is the revision that
	// it is based on.
	Shelved bool `json:"shelved,omitempty"`
	// Restricted is set for a changelist of the type restricted: only its author is
	// notified.
	Restricted  bool      `json:"restricted,omitempty"`
	User        string    `json:"user"`
	Time        time.Time `json:"time"`
	Description string    `json:"description"`
	Jobs        []string  `json:"jobs,omitempty"`
	Files       []File    `json:"files"`
	// Empty is the reason for a change without files.
	Empty EmptyReason `json:"empty,omitempty"`
	// SkippedBy is the rule by which the change is not reviewed, or empty. A skipped
	// change has number, user, client and time only.
	SkippedBy SkipRule `json:"skipped_by,omitempty"`
	// Recipients are the people who may be notified, not yet filtered by policy.
	Recipients []Recipient `json:"recipients"`
	// Unresolved lists users who would be notified but have no usable address.
	Unresolved []string `json:"unresolved,omitempty"`
	// Gaps are what could not be read beside the files.
	Gaps []Gap `json:"gaps,omitempty"`
	// Context is the code around the change.
	Context Context `json:"context,omitzero"`
	// Rules are the files with rules of teams.
	Rules []RuleFile `json:"rules,omitempty"`
}

// Encode returns the stored form of a change. It has no escapes for HTML, which make six
// bytes of one: a change of markup would exceed the limit of an artifact.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// ReadOptions say how a change is to be read.
type ReadOptions struct {
	// Shelved is set to read the shelf of a pending changelist. ShelvedAt is when the
	// trigger saw it, zero if that is not known.
	Shelved   bool
	ShelvedAt time.Time
	// LastAttempt is set if there is no further attempt: what may arrive later is left
	// out instead of being waited for.
	LastAttempt bool
}

// A Gap is what a review lacks beside files. It is shown to people and is wire format.
type Gap string

// The gaps.
const (
	GapAuthor      Gap = "the author's address"
	GapSubscribers Gap = "who follows the files"
	GapOwners      Gap = "the members of a group that owns files"
	GapDescription Gap = "the description, which is not text"
	GapJobs        Gap = "the texts of the jobs"
	GapShelf       Gap = "whether this is the newest shelf"
	GapContext     Gap = "the code around the change"
	GapRules       Gap = "the rules of the teams"
	GapHidden      Gap = "whether files are hidden from the reviewer's account"
	GapSources     Gap = "the sources of moved, branched and merged files, which are shown as new"
)

// An EmptyReason is why a change has no files. It is shown to people and is wire
// format.
type EmptyReason string

// The reasons for a change without files.
const (
	EmptyRestricted EmptyReason = "the changelist is restricted"
	EmptyNoFiles    EmptyReason = "the changelist has no files that the service may see"
	EmptyStream     EmptyReason = "the changelist changes the specification of a stream, and no file"
	EmptyTooLarge   EmptyReason = "the changelist is too large to be described"
)

// A SkipRule is why a change is not reviewed. It is shown to people and is wire
// format.
type SkipRule string

// The rules by which changes are skipped.
const (
	SkipRuleUser  SkipRule = "the user is in skip.users"
	SkipRulePaths SkipRule = "all files are in skip.paths"
	SkipRuleTag   SkipRule = "the description has a tag of skip.description_tags"
	// The following rules are not configured.
	SkipRuleGone  SkipRule = "the shelf does not exist on this server"
	SkipRuleSame  SkipRule = "the shelf has not changed since its last review"
	SkipRuleNewer SkipRule = "the changelist was shelved again before the review was over"
)

// A Content identifies the effect of a change on its files.
type Content struct {
	Digest  string // see [Change.ContentDigest]; empty if the change may not be read
	Shelved bool
	// OldNumber and SkippedBy are as in a [Change].
	OldNumber Changelist
	SkippedBy SkipRule
}

// Content returns the content of the change.
func (c Change) Content() Content {
	content := Content{Shelved: c.Shelved, OldNumber: c.OldNumber, SkippedBy: c.SkippedBy}
	if !c.Denied() {
		content.Digest = c.ContentDigest()
	}
	return content
}

// ContentDigest is equal for changes with the same effect on the same files. It covers
// path, action, type, content and base revision of every file, but not number and
// description. Content that was read counts by its SHA-256. The server's MD5, for which
// different contents can be made, counts only for a file whose content no review reads.
// It is empty if the content of a file is not known.
func (c Change) ContentDigest() string {
	var lines []string
	for _, f := range c.Files {
		deleted := f.Action == ActionDelete || f.Action == ActionMoveDelete
		identity := cmp.Or(f.SHA256, f.Digest)
		if identity == "" && !deleted {
			return ""
		}
		base := 0
		if f.Action == ActionEdit || f.Action == ActionIntegrate {
			if base = f.Revision; !c.Shelved {
				base--
			}
		}
		if deleted {
			identity = ""
		}
		lines = append(lines, fmt.Sprintf("%q %q %q %d %q", f.DepotPath, f.Action, f.Type, base, identity))
	}
	if lines == nil {
		return ""
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// Denied reports whether no file of the change may be read.
func (c Change) Denied() bool {
	return c.Empty != "" || len(c.Files) > 0 && !slices.ContainsFunc(c.Files, func(f File) bool { return !f.Skipped.IsDenied() })
}

// An Action is the action of a changelist on a file, as p4 names it.
type Action string

// The actions that p4 reports.
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

// A File is one file of a changelist with its diff.
type File struct {
	// DepotPath is decoded: %40 is @.
	DepotPath string `json:"depot_path"`
	Action    Action `json:"action"`
	Type      string `json:"type"`
	Revision  int    `json:"revision"`
	// FromPath and FromRevision are the source of a move, branch or integration if p4
	// reports one.
	FromPath     string `json:"from_path,omitempty"`
	FromRevision int    `json:"from_revision,omitempty"`
	Size         int64  `json:"size"`
	Digest       string `json:"digest,omitempty"` // MD5, as the server reports it
	// SHA256 is the hash of the bytes that p4 printed, in hex; empty if they were not
	// read.
	SHA256 string `json:"sha256,omitempty"`
	// Diff holds the hunks of a unified diff, without file headers. Lines end in LF; a
	// CR of the file is kept. It is empty if Skipped is set or nothing differs.
	Diff string `json:"diff,omitempty"`
	// Charset is the guessed encoding of lines that are not UTF-8, or empty.
	Charset string `json:"charset,omitempty"`
	// Whole is the text that the diff leads to, which redaction reads. It is empty
	// without a diff.
	Whole Whole `json:"whole,omitempty"`
	// Open are findings on content that the change takes over from reviewed revisions.
	Open []Finding `json:"open,omitempty"`
	// Notes say how the diff was made, if it does not compare the file with the revision
	// before.
	Notes []Note `json:"notes,omitempty"`
	// Skipped is why the file has no diff, or empty.
	Skipped SkipReason `json:"skipped,omitempty"`
}

// A Note says how the diff of a file was made. It is shown to people and is wire format.
type Note string

// NoteLineEnds says that a diff compares lines without their ends.
const NoteLineEnds Note = "line ends changed too"

// NoteNoBase returns the note for a file that is shown as new, because the content that it
// would be compared with cannot be read.
func NoteNoBase(why SkipReason) Note {
	return Note("shown as new, because its earlier content is missing: " + string(why))
}

// A SkipReason is why a file was not reviewed. It is shown to people and is wire
// format.
type SkipReason string

// The reasons for a skipped file.
const (
	SkipBinary          SkipReason = "binary"
	SkipDeleted         SkipReason = "deleted"
	SkipBinaryType      SkipReason = "binary by its type, not by its name"
	SkipExecutable      SkipReason = "the same content can be executed now"
	SkipSymlink         SkipReason = "symbolic link"
	SkipPurged          SkipReason = "content is no longer on the server"
	SkipUnchanged       SkipReason = "content did not change"
	SkipLineEnds        SkipReason = "only line ends changed"
	SkipTooLarge        SkipReason = "too large"
	SkipUnreadable      SkipReason = "content could not be read"
	SkipDamaged         SkipReason = "damaged on the server"
	SkipDenied          SkipReason = "no permission to read"
	SkipUnknownType     SkipReason = "file type not known"
	SkipName            SkipReason = "name with control characters"
	SkipNotAllowed      SkipReason = "path not allowed"
	SkipHidden          SkipReason = "the changelist may have files that the service may not list"
	SkipOverBudget      SkipReason = "over the review's token budget"
	SkipOverDay         SkipReason = "over the token budget of the day"
	SkipNotDecodable    SkipReason = "not decodable as text"
	SkipSecret          SkipReason = "may hold secrets, never read"
	SkipExcluded        SkipReason = "excluded by configuration"
	SkipVendored        SkipReason = "vendored"
	SkipLockFile        SkipReason = "lock file"
	SkipGenerated       SkipReason = "generated"
	SkipIntegrated      SkipReason = "integrated without edits" // from reviewed revisions
	SkipLongLine        SkipReason = "lines too long to be shown whole"
	SkipMaskedCode      SkipReason = "code was masked as a secret"
	SkipUnproven        SkipReason = "the model's endpoint did not prove that it read it"
	SkipCutAnswer       SkipReason = "the model's answer was cut off"
	SkipRefused         SkipReason = "the model or its content filter refused it"
	SkipUnusable        SkipReason = "the model gave no usable answer about it"
	SkipTooLong         SkipReason = "too long for the model, even in parts"
	SkipEndpointRefused SkipReason = "the model's endpoint refused the request about it"
	SkipOverLimit       SkipReason = "over the limits on one change"
	SkipGuessed         SkipReason = "the encoding is a guess"
	SkipNotShown        SkipReason = "the model was not asked about it"
)

// IsDenied reports whether the path of a file skipped for s may be secret.
func (s SkipReason) IsDenied() bool { return s == SkipNotAllowed || s == SkipHidden }

// A Recipient is a person who may be notified of a review.
type Recipient struct {
	User    string `json:"user"`
	Address string `json:"address"`
	Role    Role   `json:"role"`
}

// A Role is why a recipient is notified.
type Role string

// The roles of recipients. They are wire format.
const (
	RoleAuthor     Role = "author"
	RoleSubscriber Role = "subscriber"
	RoleOwner      Role = "owner"
	// RoleUnresolved marks a user without a usable address. The report lists them.
	RoleUnresolved Role = "unresolved"
)
