package review

// A Context is the code around a change, which Perforce has beside the diffs: a model
// reads it, but reviews only the diffs.
type Context struct {
	// Sources are the texts of files outside of the change that blocks are cut from.
	Sources []Source `json:"sources,omitempty"`
	// Blocks are in the order of their importance: those at the end are dropped first.
	Blocks []Block `json:"blocks,omitempty"`
}

// A Source is the text of a file that the change does not have.
type Source struct {
	Path  string `json:"path"`
	Whole Whole  `json:"whole"`
}

// A Block is some whole lines of a file, of the change or of a Source, without those
// that the diffs show.
type Block struct {
	Tier Tier      `json:"tier"`
	Kind BlockKind `json:"kind"`
	Path string    `json:"path"`
	// Line is the number of its first line, and Lines is how many it has.
	Line  int `json:"line"`
	Lines int `json:"lines"`
	// Text is the text, set when it has passed redaction.
	Text string `json:"text,omitempty"`
	// For are the indexes of the files of the change that the block serves.
	For []int `json:"for,omitempty"`
	// Names are the names on changed lines that it defines.
	Names []string `json:"names,omitempty"`
}

// A Tier is what a block costs in Perforce.
type Tier int

// The tiers.
const (
	TierChange   Tier = 0 // from files of the change
	TierSiblings Tier = 1 // from files beside it
	TierCalls    Tier = 2 // from both, and only for the verification
)

// A BlockKind is what a block is. It is shown to the model and is wire format.
type BlockKind string

// The kinds of blocks.
const (
	BlockEnclosing  BlockKind = "enclosing"  // the rest of the function or type around a hunk
	BlockImports    BlockKind = "imports"    // what a changed file imports
	BlockDefinition BlockKind = "definition" // the definition of a name on a changed line
	BlockCall       BlockKind = "call"       // a call of a function whose head is edited
)

// A RuleFile is a file with rule packs of a team, as it was in the depot before the change.
type RuleFile struct {
	Path     string `json:"path"`
	Revision int    `json:"revision"`         // 0 if there was none
	Digest   string `json:"digest,omitempty"` // SHA-256 of the content, in hex
	Text     string `json:"text,omitempty"`
}

// A RuleSource is what a review used of a [RuleFile].
type RuleSource struct {
	Path     string `json:"path"`
	Revision int    `json:"revision"`
	Digest   string `json:"digest,omitempty"`
	Invalid  bool   `json:"invalid,omitempty"` // it was left out
}
