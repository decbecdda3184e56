package redaction

import "strings"

// A lexeme is the smallest unit that forms match: s[begin:end].
type lexeme struct {
	kind       lexKind
	begin, end int
	// value is the content of a literal.
	value literal
}

type lexKind uint8

const (
	noLexeme    lexKind = iota // the end of the text, or of its section
	lexWord                    // identifiers and numbers
	lexText                    // a literal in quotes
	lexOperator                // a row of operator bytes, such as := or ===
	lexMark                    // any other byte
)

// operatorBytes begin an operator. A > may follow them; before them it is a mark, as in
// the tags of markup.
var (
	operatorBytes = setOf("=:!~?+|-")
	operatorTail  = setOf("=:!~?+|->")
)

// nextLexeme returns the lexeme at i, after blanks, comments and line ends. It
// reads at most maxGap of these.
func nextLexeme(s string, i int) lexeme {
	i = skipSpace(s, i)
	if i >= len(s) || s[i] == sectionEnd[1] {
		return lexeme{begin: i, end: i}
	}
	switch c := s[i]; {
	case codeIdent.has(c):
		return lexeme{kind: lexWord, begin: i, end: run(s, i, &codeIdent, maxName)}
	case quoteSet.has(c):
		lit, ok := quotedAt(s, i)
		if !ok {
			return lexeme{kind: lexMark, begin: i, end: i + 1}
		}
		return lexeme{lexText, i, lit.next, lit}
	case operatorBytes.has(c):
		return lexeme{kind: lexOperator, begin: i, end: run(s, i+1, &operatorTail, 3)}
	}
	return lexeme{kind: lexMark, begin: i, end: i + 1}
}

// skipSpace skips blanks, line ends and a comment.
func skipSpace(s string, i int) int {
	i = run(s, i, &spaceSet, maxGap)
	if strings.HasPrefix(s[i:], "/*") {
		if n := strings.Index(s[i:min(len(s), i+maxGap)], "*/"); n > 0 {
			i = run(s, i+n+len("*/"), &spaceSet, maxGap)
		}
	}
	return i
}

// lexemeBefore returns the lexeme that ends at i, before blanks and line ends. A
// literal is on one line.
func lexemeBefore(s string, i int) lexeme {
	i = runBack(s, i, &spaceSet, maxGap)
	if i == 0 || s[i-1] == sectionEnd[1] {
		return lexeme{begin: i, end: i}
	}
	switch c := s[i-1]; {
	case codeIdent.has(c):
		return lexeme{kind: lexWord, begin: runBack(s, i, &codeIdent, maxName), end: i}
	case quoteSet.has(c):
		begin, from := i-2, max(0, i-maxLine)
		for begin >= from && s[begin] != c && s[begin] != '\n' {
			begin--
		}
		if begin < from || s[begin] != c {
			return lexeme{kind: lexMark, begin: i - 1, end: i}
		}
		return lexeme{lexText, begin, i, literal{begin + 1, i - 1, true, i}}
	case operatorBytes.has(c):
		return lexeme{kind: lexOperator, begin: runBack(s, i, &operatorBytes, 4), end: i}
	}
	return lexeme{kind: lexMark, begin: i - 1, end: i}
}
