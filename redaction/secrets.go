package redaction

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/token"
)

// A Secret is a secret that a change adds: where it is and of what class, never its value.
type Secret struct {
	Row   int // of the diff, from 1
	Class string
	// Checked is set if the secret has a checksum: it is not an example.
	Checked bool
}

// checkedClasses are the tokens whose checksum this package verifies.
var checkedClasses = []string{"github-token", "npm-token", "grafana-key", "nkey-seed"}

// addedSecrets returns the secrets on the added lines of a diff, as far as they are certain: a
// key, the password of a URI, a token of an issuer, or a random value of a secret's name. A
// secret of several lines is returned once.
func (p *Pipeline) addedSecrets(pt *part) (out []Secret) {
	row, at := 1, 0
	last := span{end: -1}
	for _, s := range pt.spans {
		row += strings.Count(pt.raw[at:s.start], "\n")
		at = s.start
		follows := s.Class == "private-key" && last.Class == s.Class && strings.Count(pt.raw[last.end:s.start], "\n") <= 2
		if last = s; follows || pt.raw[strings.LastIndexByte(pt.raw[:s.start], '\n')+1] != '+' || !p.isCertain(s) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Row != row || out[n-1].Class != s.Class {
			out = append(out, Secret{row, s.Class, slices.Contains(checkedClasses, s.Class)})
		}
	}
	return out
}

func (p *Pipeline) isCertain(s span) bool {
	switch {
	case s.Rule == token.Generic, s.Class == "password-hash":
		return false
	case s.Class == "private-key", s.Class == "uri-password", p.engine.tokens.ContextFree(s.value) != "":
		return true
	}
	return judge.IsVeryRandom(s.value)
}
