package p4

import (
	"bytes"
	"crypto/md5" //nolint:gosec // p4's digests are MD5; they reveal damage, not attacks
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const byteOrderMark = "\ufeff"

// toText converts a file's content to UTF-8; ok is false if it is not text. Content
// with a UTF-16 byte order mark is UTF-16. In other content each line is UTF-8 or
// else Windows-1252, which includes Latin-1: one file may have lines of both.
func toText(data []byte) (text string, ok bool) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		decoded, err := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(data)
		return string(decoded), err == nil && !bytes.ContainsAny(decoded, "\x00"+undecodable)
	}
	text, ok = legacyToUTF8(string(data))
	return text, ok && !strings.Contains(text, "\x00")
}

// undecodable replaces bytes without a meaning in the encoding.
const undecodable = string(utf8.RuneError)

// legacyToUTF8 decodes the lines that are not UTF-8 as Windows-1252; ok is false if
// a byte has no meaning there, as in most text of other encodings. Names and
// descriptions need it, too: a server that is not in unicode mode stores the bytes
// its users sent.
func legacyToUTF8(s string) (text string, ok bool) {
	if utf8.ValidString(s) {
		return s, true
	}
	var b strings.Builder
	ok = true
	for line := range strings.SplitAfterSeq(s, "\n") {
		if !utf8.ValidString(line) {
			line, _ = charmap.Windows1252.NewDecoder().String(line) // inserts undecodable, and never fails
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
		if text, ok := toText(data); ok {
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
	return false
}
