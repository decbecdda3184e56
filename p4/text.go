package p4

import (
	"bytes"
	"crypto/md5" //nolint:gosec // p4's digests are MD5; they reveal damage, not attacks
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

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

// legacyToUTF8 decodes names and descriptions: a server that is not in unicode mode
// stores the bytes its users sent.
func legacyToUTF8(s string) (text string, ok bool) { return decodeLines(s, defaultCharset) }

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
