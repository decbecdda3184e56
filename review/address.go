package review

import (
	"errors"
	"net/mail"
	"strings"
	"unicode"
)

// maxAddress is the length limit of an address in bytes (RFC 5321 4.5.3.1.3).
const maxAddress = 254

// errAddress does not quote the address: errors contain no addresses.
var errAddress = errors.New("not a mail address: write one such as jo@example.com, without a name, quotes or comments")

// ParseAddress returns a mail address without a name in lower case, which identifies
// the recipient. It rejects forms that only an attack needs: quoted local parts,
// comments, address literals, line breaks and invisible characters.
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
