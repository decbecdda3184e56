package lex

import (
	"slices"
	"strings"
	"testing"
)

// Reading four blocks at a time finds the same words as reading byte by byte, even
// if a block holds characters of several bytes (security 9.5.4: a regression test).
func TestAutomatonFindsTheSameInBlocks(t *testing.T) {
	t.Parallel()
	a, err := NewAutomaton([]Word{{Text: "password"}, {Text: "secret"}, {Text: "token"}, {Text: "api_key"}, {Text: "github"}, {Text: "密码"}, {Text: "word"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, unit := range map[string]string{
		"ASCII":                  "password = secret; // token of github\n",
		"characters of 2 bytes":  "é password ü secret ß\n",
		"characters of 3 bytes":  "密码 password 秘密 token 令牌令牌\n",
		"bytes of no character":  "\xff\xfe password \xc0 token\n",
		"names beside letters":   "密code密code密" + strings.Repeat("x", 90) + "api_key",
		"much of one, then none": strings.Repeat("密", 700) + strings.Repeat("password ", 300),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(unit, 1+(lanes*maxBlock*2)/len(unit))
			type found struct {
				word string
				end  int
			}
			var got, want []found
			a.Each(text, func(w *Word, _, end int) { got = append(got, found{w.Text, end}) })
			state := uint(0)
			for i, c := range []byte(text) {
				if state = a.step(state, c); state >= a.accepting {
					a.report(state, i+1, func(w *Word, _, end int) { want = append(want, found{w.Text, end}) })
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("found %d words: want %d", len(got), len(want))
			}
		})
	}
}
