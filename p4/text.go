package p4

import (
	"bytes"
	"crypto/md5" //nolint:gosec // p4's digests are MD5; they reveal damage, not attacks
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

const byteOrderMark = "\ufeff"

// toText converts a file's content to UTF-8; ok is false if it is not text. Content
// with a UTF-16 byte order mark is UTF-16. In other content each line is UTF-8 or
// else in the given charset: one file may have lines of both.
func toText(data []byte, charset string) (text string, ok bool) {
	if isUTF16(data) {
		decoded, err := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(data)
		return string(decoded), err == nil && !bytes.ContainsAny(decoded, "\x00"+undecodable)
	}
	text, ok = decodeLines(string(data), charset)
	return text, ok && !strings.Contains(text, "\x00")
}

func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
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
		if text, ok := toText(data, defaultCharset); ok {
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
