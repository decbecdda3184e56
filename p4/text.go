package p4

import (
	"bytes"
	"cmp"
	"crypto/md5" //nolint:gosec // p4's digests are MD5; they reveal damage, not attacks
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/criticizer/criticizer/review"
)

// A fileType is a Perforce file type: a base and modifiers, text+kx.
type fileType struct{ base, modifiers string }

// baseTypes are the base types, and tempobj, an old name of binary+Sw.
var baseTypes = []string{"text", "unicode", "utf16", "utf8", "binary", "symlink", "apple", "resource", "tempobj"}

// parseType parses text+kx, and kxtext as older servers write it.
func parseType(s string) fileType {
	name, modifiers, _ := strings.Cut(s, "+")
	for _, base := range baseTypes {
		if prefix, ok := strings.CutSuffix(name, base); ok {
			return fileType{base, prefix + modifiers}
		}
	}
	return fileType{name, modifiers}
}

// skip returns the reason why files of the type are not read.
func (t fileType) skip() review.SkipReason {
	switch t.base {
	case "text", "unicode", "utf8", "utf16":
		return ""
	case "symlink":
		return review.SkipSymlink
	case "binary", "apple", "resource", "tempobj":
		return review.SkipBinary
	}
	return review.SkipUnknownType
}

func (t fileType) isExecutable() bool { return strings.Contains(t.modifiers, "x") }

func (t fileType) hasKeywords() bool { return strings.Contains(t.modifiers, "k") }

var (
	keywords   = regexp.MustCompile(`\$(Id|Header|Author|Date|DateUTC|DateTime|DateTimeUTC|DateTimeTZ|Change|File|Revision):[^$\r\n]*\$`)
	idKeywords = regexp.MustCompile(`\$(Id|Header):[^$\r\n]*\$`)
)

// maxExpansion is the largest difference in bytes between two expansions of one
// keyword, which may hold the path of a file.
const maxExpansion = 1024

// isExpansion reports whether only the expansion of keywords explains that the
// content differs from the stored digest or size: it depends on the time zone of the
// server, and on the path from which the content was branched.
func (t fileType) isExpansion(data []byte, size int64) bool {
	if !t.hasKeywords() {
		return false
	}
	n := int64(len(keywords.FindAll(data, -1)))
	return n > 0 && (size < 0 || size-int64(len(data)) <= n*maxExpansion && int64(len(data))-size <= n*maxExpansion)
}

// collapse removes the expansion of keywords, which differs between revisions
// without an edit.
func (t fileType) collapse(text string) string {
	switch {
	case strings.Contains(t.modifiers, "ko"):
		return idKeywords.ReplaceAllString(text, "$$$1$$")
	case t.hasKeywords():
		return keywords.ReplaceAllString(text, "$$$1$$")
	}
	return text
}

// Texts converts two revisions of a text file that is not in Perforce to UTF-8, in the way
// of compare: isText is false for a revision that is not text, and guess is as in
// [review.File.Charset].
func Texts(before, after []byte, configured string) (texts [2]string, isText [2]bool, guess string) {
	text := fileType{base: "text"}
	charset, guess := charsets([]*content{{data: after, fileType: text}, {data: before, fileType: text}}, configured)
	for i, data := range [][]byte{before, after} {
		texts[i], isText[i] = toText(data, text, charset)
	}
	return texts, isText, guess
}

const byteOrderMark = "\ufeff"

// toText converts a file's content to UTF-8; ok is false if it is not text. Content that
// is not UTF-16 is shown as its bytes, behind a byte order mark as well: each line is
// UTF-8 or else in the given charset, and one file may have lines of both.
func toText(data []byte, t fileType, charset string) (text string, ok bool) {
	if isUTF16(data, t) {
		return decodeUTF16(data)
	}
	mark := ""
	if hasUTF16Mark(data) {
		mark, data = byteOrderMark, data[2:]
	}
	text, ok = decodeLines(string(data), charset)
	return mark + text, ok && !strings.Contains(text, "\x00")
}

func hasUTF16Mark(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

func decodeUTF16(data []byte) (text string, ok bool) {
	decoded, err := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(data)
	return string(decoded), err == nil && !bytes.ContainsAny(decoded, "\x00"+undecodable)
}

// asciiRun is what UTF-16 does not contain: in Chinese, each byte may be a printable
// one, but not so many in a row.
var asciiRun = regexp.MustCompile(`[\t\n\r -~]{16}`)

// isUTF16 reports whether content is UTF-16: it begins with a byte order mark, and the
// file's type says so, or every other byte of most of the text is NUL. The mark alone says
// nothing: a shell skips it and runs the bytes behind it, which look like Chinese in UTF-16.
func isUTF16(data []byte, t fileType) bool {
	if !hasUTF16Mark(data) || asciiRun.Match(data) {
		return false
	}
	var nuls [2]int // at even and odd offsets
	for i, b := range data[2:] {
		if b == 0 {
			nuls[i%2]++
		}
	}
	high, low := nuls[1], nuls[0]
	if data[0] == 0xfe { // big endian
		high, low = low, high
	}
	return low <= high && (high*5 >= len(data)*2 || t.base == "utf16" && (high > 0 || !utf8.Valid(data[2:])))
}

// undecodable replaces bytes without a meaning in the encoding.
const undecodable = string(utf8.RuneError)

// decodeLines decodes the lines that are not UTF-8; ok is false if a byte has no
// meaning in the charset.
func decodeLines(s, charset string) (text string, ok bool) {
	if utf8.ValidString(s) {
		return s, true
	}
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return s, false // the configuration was checked
	}
	var b strings.Builder
	ok = true
	for line := range strings.SplitAfterSeq(s, "\n") {
		if !utf8.ValidString(line) {
			line, _ = encoding.NewDecoder().String(line) // inserts undecodable, and never fails
			ok = ok && !strings.Contains(line, undecodable)
		}
		b.WriteString(line)
	}
	return b.String(), ok
}

// isIntact compares printed content with the server's digest or, without one, with
// its size if that is not negative. Both describe the stored form of the content.
func isIntact(data []byte, digest string, size int64, t fileType) bool {
	forms := [][]byte{data}
	if t.base != "text" {
		text, ok := decodeUTF16(data)
		if !hasUTF16Mark(data) {
			text, ok = toText(data, t, defaultCharset)
		}
		if ok {
			plain := strings.TrimPrefix(text, byteOrderMark)
			forms = append(forms, []byte(plain), []byte(byteOrderMark+plain))
		}
	}
	for _, form := range forms {
		sum := md5.Sum(form) //nolint:gosec // as above
		if strings.EqualFold(hex.EncodeToString(sum[:]), digest) || digest == "" && (size < 0 || size == int64(len(form))) {
			return true
		}
	}
	return t.isExpansion(data, size)
}

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

// charsetOf returns the charset of the lines that are not UTF-8 in texts that belong
// together, empty if there are none: all revisions of a file are decoded with the same
// charset, because otherwise a wrong guess would be a change of every line. It is a guess
// unless it is the configured one.
func charsetOf(texts [][]byte, configured string) (charset string, isGuess bool) {
	var sample []byte
	for _, data := range texts {
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
		return "", false
	}
	charset = cmp.Or(detect(sample), configured, defaultCharset)
	encoding, _ := htmlindex.Get(configured) // nil for none
	same, _ := htmlindex.Get(charset)
	return charset, encoding != same && !(encoding == simplifiedchinese.GBK && same == simplifiedchinese.GB18030) // which contains it
}

// detect returns the charset of a sample, empty if none is recognized. A sample of a few
// words suffices if it is repeated.
func detect(sample []byte) string {
	for _, text := range [][]byte{sample, bytes.Repeat(sample, 1+maxRepeated/len(sample))} {
		found := chardet.Detect(text)
		charset := strings.ToLower(found.Encoding)
		if charset == "gb2312" {
			charset = "gb18030" // which contains it
		}
		if least, ok := confidences[charset]; !ok || found.Confidence < least {
			continue
		}
		if _, ok := decodeLines(string(sample), charset); ok {
			return charset
		}
	}
	return ""
}
