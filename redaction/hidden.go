package redaction

import (
	"path"
	"regexp"
	"strings"
)

// A masked literal hides what a value is, masked code what a program does. A reviewer does
// not see the code, so the file counts as not read. Who writes a change may choose a value
// that is masked elsewhere: where the two cannot be told apart, it counts as code.

// codeComments has, for each extension of code, the mark of a comment to the end of the line.
var codeComments = byExtension(map[string]string{
	"//": "c h cc cpp cxx hh hpp hxx inl m mm cs java js jsx mjs cjs ts tsx vue go rs swift kt kts scala dart groovy gradle php sol zig glsl hlsl usf ush cu proto",
	"#":  "py pyi pyx rb pl pm r ps1 psm1 tcl ex exs cr jl nim coffee awk gd",
	"--": "sql psql lua hs elm adb ads vhd",
	"'":  "vb bas vbs",
	";":  "lisp clj cljs el scm asm",
	"%":  "erl hrl",
})

// dataFiles are extensions of files in which a value needs no quotes.
var dataFiles = byExtension(map[string]string{
	"": "yaml yml json json5 jsonc toml ini cfg conf cnf config properties env csv tsv txt md rst adoc xml html htm xhtml plist tf tfvars hcl pem key crt log lock po",
})

// keyMark matches a line with the begin of a private key, in a comment or alone.
var keyMark = regexp.MustCompile(`^[-+ ][\s#/*;%]*-----BEGIN [A-Z ]*PRIVATE KEY-----\s*$`)

func byExtension(lists map[string]string) map[string]string {
	of := map[string]string{}
	for value, extensions := range lists {
		for e := range strings.FieldsSeq(extensions) {
			of["."+e] = value
		}
	}
	return of
}

// hidesCode reports whether a span in an added or removed line of the diff of the file
// masks code.
func hidesCode(file, diff string, spans []span) bool {
	ext := strings.ToLower(path.Ext(file))
	comment, isCodeFile := codeComments[ext]
	_, isData := dataFiles[ext]
	open := ""   // the mark that ends the comment or literal that a line begins in
	key := false // whether the span before is a line of a key
	marks := false
	for at := 0; at < len(diff); at = lineEnd(diff, at) {
		stop := lineEnd(diff, at)
		// What stands between the marks of a key and is none, may be masked as one.
		switch line := diff[at:stop]; {
		case isData, diff[at] == '@', strings.Contains(line, "-----END "):
			marks = false
		case keyMark.MatchString(line):
			marks = true
		case marks && diff[at] == '+' && strings.ContainsAny(line, letters+digits) && !containsAny(line, heads["keyheader"]) &&
			(len(spans) == 0 || spans[0].start >= stop):
			return true
		}
		quoted := open
		covered := func(int, int) bool { return false }
		if isCodeFile {
			covered, quoted = coveredIn(diff[at+1:stop], comment, open, ext)
		}
		for ; len(spans) > 0 && spans[0].start < stop; spans = spans[1:] {
			s := spans[0]
			text, before, after := diff[s.start:s.end], strings.TrimSpace(diff[at+1:s.start]), diff[s.end:stop]
			inKey := s.class == "private-key" && (key || isVeryRandom(text))
			key = inKey && len(text) >= 40
			switch {
			case diff[at] != '+' && diff[at] != '-', isNumbers(text), inKey:
			case isActive(text), strings.HasPrefix(after, "("), isCodeFile && !covered(s.start-at-1, s.end-at-1),
				!isCodeFile && !isData && (before == "" || strings.IndexByte(";&|(`", lastByte(before)) >= 0):
				return true
			}
		}
		switch diff[at] {
		case '@':
			open = ""
		case '+', ' ':
			open = quoted
		}
	}
	return false
}

// isActive reports whether a value has a blank or a character that a shell, SQL or the
// syntax of a language acts on, or is too long for anything but a token.
func isActive(text string) bool {
	return strings.ContainsAny(text, " \t\r`|;<>(){}[]'\"\\") || len(text) > maxLine && !allIn(text, &longSet)
}

var longSet = setOf(letters + digits + "+/=_-.")

// isNumbers reports whether text is a number, or the bytes of a key.
func isNumbers(text string) bool {
	return isDigit(text[0]) && strings.Trim(text, hexes+"xXuUlL, \t") == ""
}

// coveredIn returns which ranges of a line of code are within a comment or a literal, and the
// mark that ends the comment or literal that goes on behind the line. It begins within
// the one that open ends.
func coveredIn(line, comment, open, ext string) (within func(begin, end int) bool, next string) {
	var ranges []literal
	for i := 0; i < len(line); {
		if open == "" {
			rest := line[i:]
			switch {
			case strings.HasPrefix(rest, comment):
				ranges, i = append(ranges, literal{start: i, end: len(line)}), len(line)
				continue
			case comment == "//" && strings.HasPrefix(rest, "/*"):
				open = "*/"
			case comment == "#" && (strings.HasPrefix(rest, `"""`) || strings.HasPrefix(rest, "'''")):
				open = rest[:3]
			case rest[0] == '"', rest[0] == '\'' && ext != ".rs", rest[0] == '`' && ext == ".go":
				open = rest[:1]
			default:
				i++
				continue
			}
			i += len(open)
		}
		begin := i
		for i < len(line) && !strings.HasPrefix(line[i:], open) {
			if line[i] == '\\' && open != "*/" && open != "`" {
				i++
			}
			i++
		}
		i = min(i, len(line))
		ranges = append(ranges, literal{start: begin, end: i})
		if i < len(line) || len(open) == 1 && open != "`" {
			i += len(open)
			open = ""
		}
	}
	return func(begin, end int) bool {
		for _, r := range ranges {
			if r.start <= begin && end <= r.end {
				return true
			}
		}
		return false
	}, open
}
