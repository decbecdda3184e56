package read

import "github.com/criticizer/criticizer/redaction/internal/judge"

// A Step is a member of an object, or an element of a list, on the way to a value. The members of
// one object have the same Up.
type Step struct {
	// Name is "" for an element of a list, a row, and the text of an XML element.
	Name string
	Up   *Step

	// What [reader.document] knows of the step.
	label       string     // the text of the member that names the others
	kind        string     // the text of the member type
	isSecret    bool       // an object with kind: Secret
	isSensitive bool       // an object with sensitive: true
	isRated     bool       // the rest is set
	name        judge.Name // its own
	of          judge.Name // of the innermost step around it, or itself, that has the name of a secret
	inSecret    bool       // data of a Secret
	inSensitive bool       // the value of a sensitive object
}

// A Value is a scalar of a document: text[Start:End], without its quotes.
type Value struct {
	Path       *Step
	Start, End int
	Quoted     bool
	Bind       judge.Binding
}

// A document is what a format read of a text.
type document struct {
	// Values are in the order of the text.
	Values []Value
	// Read are the parts of the text, in order, that the parser understood to their end: all scalars
	// in them are Values, and the rest is names, structure and comments.
	Read []part
	// Cut is set if the text ends before the document: a quote or a bracket is open.
	Cut bool
}

// A part is text[From:To].
type part struct{ From, To int }

// A format reads a text with the parser of its format. It decides nothing about secrets. What it
// cannot read, or what it cannot find in the text, is not a part of the result: it is left to the tokens.
type format func(text string) document

// formats are the formats by the name of their language.
var formats = map[string]format{
	"hcl":  readHCL,
	"json": readJSON,
	"toml": readTOML,
	"yaml": readYAML,
}

const (
	// maxNesting bounds the recursion of parsers that have no bound of their own.
	maxNesting = 200
	// maxSlow bounds the texts for parsers that need seconds for a megabyte, or recurse without a bracket.
	maxSlow = 64 << 10
)

// add adds the value text[start:end] of the step.
func (doc *document) add(path *Step, start, end int, quoted bool, bind judge.Binding) {
	if start < end {
		doc.Values = append(doc.Values, Value{path, start, end, quoted, bind})
	}
}

// binding is how the scalar at path is bound to its name.
func binding(path *Step) judge.Binding {
	if path != nil && path.Name != "" {
		return judge.Assigned
	}
	return judge.Item
}
