package redaction

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

// A Change is a [review.Change] whose texts are of type Text.
type Change struct {
	Number      review.Changelist
	User        Text   `json:"-"`
	Description Text   `json:"-"`
	Jobs        []Text `json:"-"`
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
	Path     Text `json:"-"`
	Text     Text `json:"-"`
	Revision int
	Digest   string
}

// A File is a [review.File] whose texts are of type Text.
type File struct {
	Path   Text `json:"-"`
	Action review.Action
	Type   Text `json:"-"`
	// FromPath is empty unless p4 reported a source.
	FromPath Text   `json:"-"`
	Diff     Text   `json:"-"`
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

// A Block is a [review.Block] whose texts are of type Text.
type Block struct {
	Tier review.Tier
	Kind review.BlockKind
	Path Text `json:"-"`
	// Line is the number of the first line of Text, which has whole lines.
	Line int
	Text Text `json:"-"`
	// For are the indexes of the files of the change that the block serves.
	For []int
	// Names are the names on changed lines that it defines, separated by blanks.
	Names Text `json:"-"`
}

// texts returns the texts of the change, always in the same order.
func (c *Change) texts() []*Text {
	out := []*Text{&c.User, &c.Description}
	for i := range c.Jobs {
		out = append(out, &c.Jobs[i])
	}
	for i := range c.Rules {
		out = append(out, &c.Rules[i].Path, &c.Rules[i].Text)
	}
	for i := range c.Files {
		f := &c.Files[i]
		out = append(out, &f.Path, &f.Type, &f.FromPath, &f.Diff)
	}
	for i := range c.Context {
		b := &c.Context[i]
		out = append(out, &b.Path, &b.Names, &b.Text)
	}
	return out
}

// Change redacts everything of c that may reach a model, as one payload: a
// secret found in one place is masked in all. Lines, diff prefixes and hunk
// headers stay where they are. An error has class [failure.RedactionBlocked]. A description,
// job or rule file that is not text, and a context that cannot be redacted, are left out, and
// a gap records that.
func (p *Pipeline) Change(c review.Change) (Change, error) {
	out, err := p.change(c)
	if err != nil && len(c.Context.Blocks) > 0 {
		c.Context = review.Context{}
		c.Gaps = append(slices.Clone(c.Gaps), review.GapContext)
		out, err = p.change(c)
	}
	if err != nil {
		return Change{}, err
	}
	return out, nil
}

// unredacted returns the change with its raw texts, which no Verify accepts, but for diffs and the texts of
// blocks.
func unredacted(c review.Change) Change {
	raw := func(s string) Text { return Text{s: s} }
	out := Change{Number: c.Number, User: raw(c.User), SubmittedAt: c.Time, Gaps: c.Gaps, Restricted: c.Restricted, Empty: c.Empty}
	legible := func(s string, gap review.Gap) Text {
		if readable(strings.ToValidUTF8(s, "\uFFFD")) {
			return raw(s)
		}
		if !slices.Contains(out.Gaps, gap) {
			out.Gaps = append(slices.Clip(out.Gaps), gap)
		}
		return Text{}
	}
	out.Description = legible(c.Description, review.GapDescription)
	for _, job := range c.Jobs {
		out.Jobs = append(out.Jobs, legible(job, review.GapJobs))
	}
	for _, f := range c.Rules {
		out.Rules = append(out.Rules, RuleFile{raw(f.Path), legible(f.Text, review.GapRules), f.Revision, f.Digest})
	}
	for _, f := range c.Files {
		out.Files = append(out.Files, File{
			Path: raw(f.DepotPath), Action: f.Action, Type: raw(f.Type), FromPath: raw(f.FromPath), Size: f.Size,
			Charset: f.Charset, Notes: f.Notes, Skipped: f.Skipped, Open: slices.Clone(f.Open),
		})
	}
	for _, b := range c.Context.Blocks {
		out.Context = append(out.Context, Block{Tier: b.Tier, Kind: b.Kind, Path: raw(b.Path), Line: b.Line, For: b.For, Names: raw(strings.Join(b.Names, " "))})
	}
	return out
}

// change redacts the texts of the unredacted change in place. With an error, it returns raw texts.
func (p *Pipeline) change(c review.Change) (out Change, err error) {
	defer recoverBlocked(&err)
	out = unredacted(c)
	pl := &payload{Pipeline: p, scope: "changelist " + c.Number.String()}
	for _, t := range out.texts() {
		if t.s != "" {
			pl.add(t.s, t)
		}
	}
	isRead := map[string]bool{} // whole, by path
	diffs, quotes := make([]*part, len(c.Files)), make([][]Text, len(c.Files))
	for i, f := range c.Files {
		quotes[i] = make([]Text, len(f.Open))
		for j, open := range f.Open {
			pl.add(open.Quote, &quotes[i][j])
		}
		if f.Diff = strings.ToValidUTF8(f.Diff, "\uFFFD"); !readable(f.Diff) {
			out.Files[i].Skipped = review.SkipNotDecodable
			continue
		}
		var whole string
		var found []span
		if diffs[i], whole, found, err = pl.addFile(f, &out.Files[i].Diff); err != nil {
			return out, failure.Errorf(failure.RedactionBlocked, "redact file %d of changelist %d: %w", i+1, c.Number, err)
		}
		if diffs[i].isWhole {
			pl.addBlocks(out.Context, c.Context.Blocks, f.DepotPath, whole, found)
			isRead[f.DepotPath] = true
		}
	}
	if err := pl.addContext(out.Context, c.Context, isRead); err != nil {
		return out, failure.Errorf(failure.RedactionBlocked, "redact the context of changelist %d: %w", c.Number, err)
	}
	if err := pl.redact(); err != nil {
		return out, err
	}
	for i, pt := range diffs {
		to := &out.Files[i]
		if pt != nil {
			to.Hidden, to.Secrets = pt.hiddenLines(c.Files[i]), pt.addedSecrets(p.engine)
		}
		for j, quote := range quotes[i] {
			to.Open[j].Quote = quote.s
		}
	}
	out.Redactions = pl.counts()
	return out, nil
}

// addContext adds the blocks of files that are not in the change.
func (pl *payload) addContext(out []Block, c review.Context, isRead map[string]bool) error {
	for _, source := range c.Sources {
		if isRead[source.Path] {
			continue
		}
		text, err := source.Whole.Text()
		if err != nil {
			return err
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		pl.addBlocks(out, c.Blocks, source.Path, text, pl.scanWhole(text, pl.engine.hits(text, nil, nil), lex.Of(source.Path)).spans)
		isRead[source.Path] = true
	}
	if i := slices.IndexFunc(c.Blocks, func(b review.Block) bool { return !isRead[b.Path] }); i >= 0 {
		return fmt.Errorf("block %d has no text", i+1)
	}
	return nil
}

// addBlocks adds the blocks of a whole file, with what the whole file reveals masked.
func (pl *payload) addBlocks(out []Block, blocks []review.Block, path, text string, found []span) {
	for i, b := range blocks {
		if b.Path == path {
			from, to := lineRange(text, b)
			pl.add(text[from:to], &out[i].Text).spans = side{shown: []shown{{from, to, 0}}}.project(found)
		}
	}
}

// lineRange returns the range of the lines of a block in the text of its file.
func lineRange(text string, b review.Block) (from, to int) {
	for line := 1; line < b.Line && from < len(text); line++ {
		from = lex.LineEnd(text, from)
	}
	to = from
	for range max(b.Lines, 0) {
		to = lex.LineEnd(text, to)
	}
	return from, to
}

// sealMagic begins a sealed change. Its last part is the format version.
const sealMagic = "criticizer-redacted/1"

// A sealedChange is the stored form of a [Change].
type sealedChange struct {
	Change withoutTexts
	Jobs   int
	Texts  []string // in the order of [Change.texts]
}

// withoutTexts is a Change that is encoded without its texts.
type withoutTexts Change

// MarshalJSON returns an error, as that of [Text] does.
func (c Change) MarshalJSON() ([]byte, error) { return c.User.MarshalJSON() }

// Seal encodes a change for the way from the redact stage to the model stage.
// The first line names the pipeline's version and authenticates both lines.
func (p *Pipeline) Seal(c Change) ([]byte, error) {
	s := sealedChange{Change: withoutTexts(c), Jobs: len(c.Jobs)}
	for _, t := range c.texts() {
		s.Texts = append(s.Texts, t.s)
	}
	body, err := review.Encode(s)
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
	err := json.Unmarshal(body, &s)
	c := Change(s.Change)
	c.Jobs = append(c.Jobs, make([]Text, s.Jobs)...)
	texts := c.texts()
	if err != nil || len(texts) != len(s.Texts) {
		return Change{}, failure.Errorf(failure.RedactionBlocked, "unseal change: decode the stored form")
	}
	for i, t := range texts {
		*t = p.text(s.Texts[i])
	}
	return c, nil
}

func (p *Pipeline) seal(version string, body []byte) string {
	mac := hmac.New(sha256.New, p.sealKey)
	mac.Write([]byte(version + "\x00"))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
