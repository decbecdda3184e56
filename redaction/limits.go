package redaction

// The limits of the search bound the work for each byte of a text. They are in
// bytes, except maxContinued, which is in lines.
const (
	maxContinued = 6        // a command
	maxAction    = 16       // more than the longest action of p4, such as move/delete
	maxAlgorithm = 7        // the longest name of an algorithm
	maxArgument  = 128      // an argument that is skipped
	maxBranch    = 240      // from a name to the branches of a conditional
	maxColumn    = 40       // the name of a column
	maxColumns   = 2 << 10  // the table and the columns of an SQL statement
	maxCommand   = 1 << 10  // a command
	maxDocument  = 8 << 10  // a document, on either side of its mark
	maxFolded    = 3        // a gap that belongs to a secret: a zero-width character
	maxGap       = 80       // the blanks between a name and its value
	maxHeader    = 1 << 10  // the line that names the columns of a table
	maxInspected = 512      // the part of a long value that is inspected
	maxJoin      = 48       // the blanks and operators between joined literals
	maxKey       = 64 << 10 // a block of key material; the largest RSA keys have 13 kB
	maxKeyLine   = 512      // a line of a key with what stands around it
	maxKeyWidth  = 76       // a line of a key in PEM
	maxLine      = 256      // a line of configuration
	maxList      = 2 << 10  // a list of values
	maxName      = 64       // an identifier, on each side of the stem that was found in it
	maxPhrase    = 64       // a passphrase
	maxPipe      = 256      // from what is written into a program to the program
	maxToken     = 8 << 10  // a token; the longest known ones have a few thousand bytes
	maxURI       = 512      // the part of a URI that may hold a password
	maxValue     = 4 << 10  // a value; the rest of a longer one is read as the next value
	minKnown     = 8        // a value that is masked wherever it occurs, at least
)
