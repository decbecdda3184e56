package lex

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The automaton finds the words that a search of each word finds, beside characters of several bytes as well.
func TestAutomatonFindsEachWord(t *testing.T) {
	t.Parallel()
	var words []Word
	for w := range strings.FieldsSeq("password secret token api_key github word 密码") {
		words = append(words, Word{Text: w})
	}
	a, err := NewAutomaton(words)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"password = secret; // Token of GitHub\n", "é password ü secret ß\n", "密码 password 秘密 token\n", "\xff\xfe password \xc0 token\n", "密code密xapi_keyword"} {
		text := strings.Repeat(unit, 1+lanes*maxBlock/len(unit))
		var got, want []string
		a.Each(text, func(w *Word, begin, _ int) {
			if strings.EqualFold(text[begin:begin+len(w.Text)], w.Text) {
				got = append(got, fmt.Sprint(w.Text, begin))
			}
		})
		for _, w := range words {
			for i := range len(text) - len(w.Text) + 1 {
				if strings.EqualFold(text[i:i+len(w.Text)], w.Text) {
					want = append(want, fmt.Sprint(w.Text, i))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("found %d words in copies of %q: want %d", len(got), unit, len(want))
		}
	}
}
