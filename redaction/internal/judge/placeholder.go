package judge

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

const (
	// PlaceholderHead begins every placeholder.
	PlaceholderHead = "[REDACTED:"
	// TagLen is the length of the tag of a placeholder, in hex digits.
	TagLen = 4
)

// PlaceholderLen returns the length of the placeholder that s begins with, or 0. Only the
// exact form with a class of the rules counts: something similar could hide a secret.
func (n *Names) PlaceholderLen(s string) int {
	rest, ok := strings.CutPrefix(s, PlaceholderHead)
	if !ok {
		return 0
	}
	class, rest, ok := strings.Cut(rest[:min(len(rest), 48)], ":")
	if !ok || !n.Classes[class] || len(rest) <= TagLen || rest[TagLen] != ']' || !lex.AllIn(rest[:TagLen], &lex.LowerHex) {
		return 0
	}
	return len(PlaceholderHead) + len(class) + 1 + TagLen + 1
}

var classSet = lex.SetOf(lex.Lowers, lex.Digits, "-")

// ValidClass reports whether s is the name of a class.
func ValidClass(s string) bool {
	return len(s) > 0 && len(s) <= 32 && lex.AllIn(s, &classSet)
}
