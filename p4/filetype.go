package p4

import (
	"regexp"
	"strings"

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

// skip returns the reason why files of the type are not read. An unknown type
// counts as binary.
func (t fileType) skip() review.SkipReason {
	switch t.base {
	case "text", "unicode", "utf8", "utf16":
		return ""
	case "symlink":
		return review.SkipSymlink
	}
	return review.SkipBinary
}

// isConverted reports whether p4 prints other bytes than the server stored and
// digested, in another encoding.
func (t fileType) isConverted() bool { return t.base != "text" }

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
