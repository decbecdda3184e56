package review

import (
	"errors"
	"net/mail"
	"strings"
	"unicode"
)

// maxAddress is how long an address can be (RFC 5321 4.5.3.1.3).
const maxAddress = 254

// errAddress does not quote the address: errors hold none.
var errAddress = errors.New("not an address that mail can be sent to: want one such as jo@example.com, without a name, quotes or comments")

// ParseAddress returns a bare mail address in the one spelling that recipients
// are told apart by: lower case. It refuses forms that only an attack needs,
// such as quoted local parts, comments, address literals, line breaks, and
// characters that cannot be seen.
func ParseAddress(s string) (string, error) {
	s = strings.TrimSpace(s)
	a, err := mail.ParseAddress(s)
	switch {
	case err != nil, a.Name != "", a.Address != s, len(s) > maxAddress,
		strings.ContainsAny(s, "\"\\()<>[],:; "),
		strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return "", errAddress
	}
	return strings.ToLower(s), nil
}
