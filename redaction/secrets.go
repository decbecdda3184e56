package redaction

import (
	"hash/crc32"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/redaction/internal/token"
)

// A Secret is a secret that a change adds: where it is and of what class, never its value.
type Secret struct {
	Row   int // of the diff, from 1
	Class string
	// Checked is set if the secret has a checksum and it is right: it is not an example.
	Checked bool
}

// addedSecrets returns the secrets on the added lines of a diff, as far as they are certain: a
// key, the password of a URI, a token of an issuer, or a random value of a secret's name. A
// secret of several lines is returned once.
func (pt *part) addedSecrets(e *engine) (out []Secret) {
	row, at := 1, 0
	last := span{end: -1}
	for _, s := range pt.spans {
		row += strings.Count(pt.raw[at:s.start], "\n")
		at = s.start
		follows := s.Class == "private-key" && last.Class == s.Class && strings.Count(pt.raw[last.end:s.start], "\n") <= 2
		if last = s; follows || pt.raw[strings.LastIndexByte(pt.raw[:s.start], '\n')+1] != '+' || !e.isCertain(s) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Row != row || out[n-1].Class != s.Class {
			out = append(out, Secret{row, s.Class, hasChecksum(s)})
		}
	}
	return out
}

// hasChecksum reports whether the last six bytes of a token of GitHub or npm are the CRC-32
// of what is between them and the prefix, in base 62.
func hasChecksum(s span) bool {
	const size = 6
	_, body, _ := strings.Cut(s.value, "_")
	if s.Class != "github-token" && s.Class != "npm-token" || len(body) <= size {
		return false
	}
	body, sum := body[:len(body)-size], body[len(body)-size:]
	n := crc32.ChecksumIEEE([]byte(body))
	for i := size - 1; i >= 0; i-- {
		if sum[i] != (lex.Digits + lex.Uppers + lex.Lowers)[n%62] {
			return false
		}
		n /= 62
	}
	return n == 0
}

// isCertain reports whether a span holds a secret beyond doubt.
func (e *engine) isCertain(s span) bool {
	switch {
	case s.Rule == token.Generic, s.Class == "password-hash":
		return false
	case s.Class == "private-key", s.Class == "uri-password":
		return true
	case s.hidden != "", len(s.value) > maxValue: // the value may be the rest of a text, in each of its lines
		return false
	case e.contextFreeRule(s.value) != "":
		return true
	}
	return judge.IsVeryRandom(s.value)
}
