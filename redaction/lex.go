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
	lexOperator                // the longest of the list "operator"
	lexMark                    // any other byte
)

var (
	operators     = lists["operator"]
	operatorBytes = setOf(heads["operator"]...)
	maxOperator   = 4
)

// nextLexeme returns the lexeme at i, after blanks and line ends. It
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
		if lit, ok := quotedAt(s, i); ok {
			return lexeme{lexText, i, lit.next, lit}
		}
	case operatorBytes.has(c):
		for end := run(s, i, &operatorBytes, maxOperator); end > i; end-- {
			if operators[s[i:end]] {
				return lexeme{kind: lexOperator, begin: i, end: end}
			}
		}
	}
	return lexeme{kind: lexMark, begin: i, end: i + 1}
}

// skipSpace skips blanks and line ends.
func skipSpace(s string, i int) int { return run(s, i, &spaceSet, maxGap) }

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
		line := s[max(0, i-maxLine) : i-1]
		if begin := strings.LastIndexByte(line, c); begin >= 0 && strings.IndexByte(line[begin:], '\n') < 0 {
			begin += i - 1 - len(line)
			return lexeme{lexText, begin, i, literal{begin + 1, i - 1, true, i}}
		}
	case operatorBytes.has(c):
		for begin := runBack(s, i, &operatorBytes, maxOperator); begin < i; begin++ {
			if operators[s[begin:i]] {
				return lexeme{kind: lexOperator, begin: begin, end: i}
			}
		}
	}
	return lexeme{kind: lexMark, begin: i - 1, end: i}
}
