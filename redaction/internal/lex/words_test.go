package lex

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Words finds what a search of each word finds, also words of one byte, at the end of a text, and beside characters of
// several bytes.
func TestWordsFindsEachWord(t *testing.T) {
	t.Parallel()
	var words []Word
	for w := range strings.FieldsSeq("password pass secret token api_key pw @ github word 密码 пароль") {
		words = append(words, Word{Text: w})
	}
	x := NewWords(words)
	for _, text := range []string{"password = secret; // Token of GitHub\npw", "é password ü secret ß@", "密码 password 秘密 token\n", "\xff\xfe password \xc0 token", "密code密xapi_keyword", "ПАРОЛЬ пароль", "PAss", "p", ""} {
		var got, want []string
		x.Each(text, func(w *Word, begin, end int) { got = append(got, fmt.Sprint(w.Text, begin, end)) })
		for i := range text {
			for _, w := range words {
				if end := i + len(w.Text); end <= len(text) && strings.EqualFold(text[i:end], w.Text) {
					want = append(want, fmt.Sprint(w.Text, i, end))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %q in %q: want %q", got, text, want)
		}
	}
}
