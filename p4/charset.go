package p4

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
)

// defaultCharset includes Latin-1.
const defaultCharset = "windows-1252"

// confidences are the charsets that the detector recognizes, each with the lowest
// confidence at which it was right for the comments of source files (charset_test.go). It
// confuses other charsets, such as Turkish and Western European ones.
var confidences = map[string]float64{
	"shift_jis": 0.9, "euc-jp": 0.9, "euc-kr": 0.9, "gb18030": 0.9, "big5": 0.9, "windows-1251": 0.7, "koi8-r": 0.7,
}

// maxSample is the number of bytes that determine a charset, and maxRepeated the number
// that a short sample is repeated to.
const (
	maxSample   = 64 << 10
	maxRepeated = 256
)

// guessCharset returns the charset of the lines that are not UTF-8 in the revisions
// of a file without those in UTF-16, empty if there are none. All revisions are decoded with the same charset:
// otherwise a wrong guess would be a change of every line.
func (c Config) guessCharset(revisions [][]byte) string {
	var sample []byte
	for _, data := range revisions {
		if hasUTF16Mark(data) {
			data = data[2:]
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
		charset := strings.ToLower(found.Encoding)
		if charset == "gb2312" {
			charset = "gb18030" // which contains it
		}
		least, ok := confidences[charset]
		if ok = ok && found.Confidence >= least; !ok {
			continue
		}
		if _, ok = decodeLines(string(sample), charset); ok {
			return charset
		}
	}
	return c.CharsetFallback
}
