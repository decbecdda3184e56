package p4

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
)

// defaultCharset includes Latin-1.
const defaultCharset = "windows-1252"

// A guess is a charset that the detector recognizes, and the least confidence with
// which it was right for the comments of source files (charset_test.go). It confuses
// other charsets, such as those of Turkish and of Western Europe.
type guess struct {
	charset    string
	confidence float64
}

var guesses = map[string]guess{
	"shift_jis": {"shift_jis", 0.9}, "cp932": {"shift_jis", 0.9}, "euc-jp": {"euc-jp", 0.9},
	"euc-kr": {"euc-kr", 0.9}, "cp949": {"euc-kr", 0.9}, "uhc": {"euc-kr", 0.9},
	"gb2312": {"gb18030", 0.9}, "gb18030": {"gb18030", 0.9}, "big5": {"big5", 0.9},
	"windows-1251": {"windows-1251", 0.7}, "koi8-r": {"koi8-r", 0.7},
}

// maxSample is the number of bytes that determine a charset, and maxRepeated the number
// that a short sample is repeated to.
const (
	maxSample   = 64 << 10
	maxRepeated = 256
)

// guessCharset returns the charset of the lines that are not UTF-8 in the revisions
// of a file, empty if there are none. All revisions are decoded with the same charset:
// otherwise a wrong guess would be a change of every line.
func (c Config) guessCharset(revisions [][]byte) string {
	var sample []byte
	for _, data := range revisions {
		if isUTF16(data) {
			continue
		}
		for line := range bytes.Lines(data) {
			if !utf8.Valid(line) && len(sample) < maxSample {
				sample = append(sample, line...)
			}
		}
	}
	if sample == nil {
		return ""
	}
	// A sample of a few words suffices if it is repeated.
	for _, text := range [][]byte{sample, bytes.Repeat(sample, 1+maxRepeated/len(sample))} {
		found := chardet.Detect(text)
		g, ok := guesses[strings.ToLower(found.Encoding)]
		if !ok || found.Confidence < g.confidence {
			continue
		}
		if _, ok := decodeLines(string(sample), g.charset); ok {
			return g.charset
		}
	}
	return c.CharsetFallback
}
