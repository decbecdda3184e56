package redaction

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A Change is a [review.Change] whose texts are of type Text.
type Change struct {
	Number      review.Changelist
	User        Text
	Description Text
	Jobs        []Text
	SubmittedAt time.Time
	Files       []File
	// Context is the code around the change, the most important first.
	Context []Block
	Rules   []RuleFile
	Gaps    []review.Gap
	// Restricted and Empty are as in a [review.Change].
	Restricted bool
	Empty      review.EmptyReason
	// Redactions counts what was masked, by class, sorted by class.
	Redactions []review.Redaction
}

// A RuleFile is a [review.RuleFile] whose texts are of type Text.
type RuleFile struct {
	Path, Text Text
	Revision   int
	Digest     string
}

// A File is a [review.File] whose texts are of type Text.
type File struct {
	Path   Text
	Action review.Action
	Type   Text
	// FromPath is empty unless p4 reported a source.
	FromPath Text
	Diff     Text
	Size     int64  // in bytes, of the new content; 0 if it is not known
	Charset  string // as in [review.File]: one of the product's names, or empty
	Notes    []review.Note
	// Skipped is [review.SkipNotDecodable] for a diff that this package cannot
	// read as text. The diff is left out.
	Skipped review.SkipReason
	// Open are findings on content that the file takes over. Only their quotes, which are
	// redacted, have text of the change.
	Open []review.Finding
	// Hidden are the lines of Diff that do not show all that a reviewer has to see.
	Hidden []Hidden
	// Secrets are the certain ones that the change adds.
	Secrets []Secret
}

// Change redacts everything of c that may reach a model, as one payload: a
// secret found in one place is masked in all. Lines, diff prefixes and hunk
// headers stay where they are; long jobs and headings of hunks are cut. An error has
// class [failure.RedactionBlocked]. A description, job or rule file that is not text, and
// a context that cannot be redacted, are left out, and a gap records that.
func (p *Pipeline) Change(c review.Change) (Change, error) {
	out, err := p.change(c)
	if err == nil || len(c.Context.Blocks) == 0 {
		return out, err
	}
	c.Context = review.Context{}
	c.Gaps = append(slices.Clone(c.Gaps), review.GapContext)
	return p.change(c)
}

func (p *Pipeline) change(c review.Change) (out Change, err error) {
	defer recoverBlocked(&err)
	out = Change{Number: c.Number, SubmittedAt: c.Time, Files: make([]File, len(c.Files)), Gaps: c.Gaps, Restricted: c.Restricted, Empty: c.Empty}
	pl := &payload{scope: "changelist " + c.Number.String()}
	blocks := newCutter(p.engine.names, pl, c.Context.Blocks)
	pl.add(formText, c.User, &out.User)
	pl.add(formText, out.legible(c.Description, review.GapDescription), &out.Description)
	out.Jobs = make([]Text, len(c.Jobs))
	for i, job := range c.Jobs {
		pl.add(formText, out.legible(job, review.GapJobs), &out.Jobs[i])
	}
	out.Rules = append(out.Rules, make([]RuleFile, len(c.Rules))...) // nil if there are none
	for i, f := range c.Rules {
		out.Rules[i].Revision, out.Rules[i].Digest = f.Revision, f.Digest
		pl.add(formText, f.Path, &out.Rules[i].Path)
		pl.add(formText, out.legible(f.Text, review.GapRules), &out.Rules[i].Text)
	}
	var quotes [][]Text // of the open findings of each file
	for i, f := range c.Files {
		to := &out.Files[i]
		to.Action, to.Size, to.Skipped, to.Charset, to.Notes = f.Action, f.Size, f.Skipped, f.Charset, f.Notes
		pl.add(formText, f.DepotPath, &to.Path)
		pl.add(formText, f.Type, &to.Type)
		pl.add(formText, f.FromPath, &to.FromPath)
		to.Open = slices.Clone(f.Open)
		quotes = append(quotes, make([]Text, len(f.Open)))
		for j, open := range f.Open {
			pl.add(formText, open.Quote, &quotes[i][j])
		}
		diff := strings.ToValidUTF8(f.Diff, "\uFFFD")
		if !readable(diff) {
			to.Skipped = review.SkipNotDecodable
			continue
		}
		pl.add(formDiff, diff, &to.Diff)
		pl.parts[len(pl.parts)-1].file = f.DepotPath
		if len(f.Whole) == 0 {
			continue // without a diff
		}
		whole, err := p.scanWhole(pl, pl.parts[len(pl.parts)-1], f)
		if err != nil {
			return Change{}, failure.Errorf(failure.RedactionBlocked, "redact file %d of changelist %d: %w", i+1, c.Number, err)
		}
		blocks.from(f.DepotPath, whole)
	}
	if err := p.scanContext(pl, blocks, c.Context); err != nil {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "redact the context of changelist %d: %w", c.Number, err)
	}
	out.Context = blocks.blocks
	if err := p.redact(pl); err != nil {
		return Change{}, err
	}
	for i := range out.Jobs {
		out.Jobs[i] = p.text(cut(out.Jobs[i].s, maxJob))
	}
	parts := map[*Text]*part{}
	for _, pt := range pl.parts {
		parts[pt.out] = pt
	}
	for i := range out.Files {
		to := &out.Files[i]
		if pt := parts[&to.Diff]; pt != nil {
			if !pt.whole {
				pt.setLiterals()
			}
			to.Hidden, to.Secrets = pt.hiddenLines(), p.addedSecrets(pt)
		}
		to.Diff = p.text(cutHeadings(to.Diff.s))
		for j, quote := range quotes[i] {
			to.Open[j].Quote = quote.s
		}
	}
	out.Redactions = pl.counts()
	return out, nil
}

// legible returns s, or nothing and adds the gap if s is not text.
func (c *Change) legible(s string, gap review.Gap) string {
	if readable(strings.ToValidUTF8(s, "\uFFFD")) {
		return s
	}
	if !slices.Contains(c.Gaps, gap) {
		c.Gaps = append(slices.Clip(c.Gaps), gap)
	}
	return ""
}

// sealMagic begins a sealed change. Its last part is the format version.
const sealMagic = "criticizer-redacted/1"

// A sealedChange is the stored form of a [Change].
type sealedChange struct {
	Change review.Change `json:"change"`
	// Hidden has the hidden lines of each file, Secrets the secrets that each adds.
	Hidden     [][]Hidden         `json:"hidden,omitempty"`
	Secrets    [][]Secret         `json:"secrets,omitempty"`
	Redactions []review.Redaction `json:"redactions,omitempty"`
}

// Seal encodes a change for the way from the redact stage to the model stage.
// The first line names the pipeline's version and authenticates both lines.
func (p *Pipeline) Seal(c Change) ([]byte, error) {
	raw := review.Change{Number: c.Number, User: c.User.s, Description: c.Description.s, Time: c.SubmittedAt, Gaps: c.Gaps, Restricted: c.Restricted, Empty: c.Empty}
	for _, job := range c.Jobs {
		raw.Jobs = append(raw.Jobs, job.s)
	}
	hidden, secrets := make([][]Hidden, len(c.Files)), make([][]Secret, len(c.Files))
	for i, f := range c.Files {
		hidden[i], secrets[i] = f.Hidden, f.Secrets
		raw.Files = append(raw.Files, review.File{DepotPath: f.Path.s, Action: f.Action, Type: f.Type.s, FromPath: f.FromPath.s, Diff: f.Diff.s, Size: f.Size, Charset: f.Charset, Notes: f.Notes, Skipped: f.Skipped, Open: f.Open})
	}
	for _, f := range c.Rules {
		raw.Rules = append(raw.Rules, review.RuleFile{Path: f.Path.s, Revision: f.Revision, Digest: f.Digest, Text: f.Text.s})
	}
	for _, b := range c.Context {
		raw.Context.Blocks = append(raw.Context.Blocks, review.Block{Tier: b.Tier, Kind: b.Kind, Path: b.Path.s, Line: b.Line, Text: b.Text.s, For: b.For, Names: strings.Fields(b.Names.s)})
	}
	body, err := review.Encode(sealedChange{raw, hidden, secrets, c.Redactions})
	if err != nil {
		return nil, failure.Errorf(failure.RedactionBlocked, "seal changelist %d: %w", c.Number, err)
	}
	head := sealMagic + " " + p.version + " " + p.seal(p.version, body) + "\n"
	return append([]byte(head), body...), nil
}

// Unseal decodes what Seal of a pipeline with the same key and version made. It
// returns an error for anything else, of class REDACTION_OUTDATED for what a pipeline with
// the same key and another version made: it has to be redacted again.
func (p *Pipeline) Unseal(data []byte) (Change, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	fields := bytes.Split(head, []byte(" "))
	if len(fields) != 3 || string(fields[0]) != sealMagic {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: not sealed by a redaction pipeline")
	}
	if !hmac.Equal(fields[2], []byte(p.seal(string(fields[1]), body))) {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: the seal is invalid or was made with another key")
	}
	if string(fields[1]) != p.version {
		return Change{}, failure.Errorf(failure.RedactionOutdated, "unseal change: sealed by another redaction version than %s", p.version)
	}
	var s sealedChange
	if err := json.Unmarshal(body, &s); err != nil {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: decode the stored form")
	}
	raw := s.Change
	c := Change{Number: raw.Number, User: p.text(raw.User), Description: p.text(raw.Description), SubmittedAt: raw.Time, Gaps: raw.Gaps, Restricted: raw.Restricted, Empty: raw.Empty, Redactions: s.Redactions}
	for _, job := range raw.Jobs {
		c.Jobs = append(c.Jobs, p.text(job))
	}
	for i, f := range raw.Files {
		file := File{Path: p.text(f.DepotPath), Action: f.Action, Type: p.text(f.Type), FromPath: p.text(f.FromPath), Diff: p.text(f.Diff), Size: f.Size, Charset: f.Charset, Notes: f.Notes, Skipped: f.Skipped, Open: f.Open}
		if i < len(s.Hidden) && i < len(s.Secrets) {
			file.Hidden, file.Secrets = s.Hidden[i], s.Secrets[i]
		}
		c.Files = append(c.Files, file)
	}
	for _, f := range raw.Rules {
		c.Rules = append(c.Rules, RuleFile{p.text(f.Path), p.text(f.Text), f.Revision, f.Digest})
	}
	for _, b := range raw.Context.Blocks {
		c.Context = append(c.Context, Block{b.Tier, b.Kind, p.text(b.Path), b.Line, p.text(b.Text), b.For, p.text(strings.Join(b.Names, " "))})
	}
	return c, nil
}

func (p *Pipeline) seal(version string, body []byte) string {
	mac := hmac.New(sha256.New, p.sealKey)
	mac.Write([]byte(version + "\x00"))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
