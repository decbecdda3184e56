package redaction

import (
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

// A masked literal hides what a value is, masked code what a program does. A reviewer does
// not see the code, so its lines count as not read. Who writes a change may choose a value
// that is masked elsewhere: where the two cannot be told apart, it counts as code.

// Hidden is a range of lines of a diff, from 1, of which a reviewer sees less than a masked literal.
type Hidden struct {
	First, Last int
	Reason      string
}

// The reasons of hidden lines.
const (
	hiddenCode  = "code masked"
	hiddenValue = "a masked value may be code"
	hiddenKey   = "code between the marks of a key"
)

// keyMark matches a line with the begin of a private key, in a comment or alone.
var keyMark = regexp.MustCompile(`^[-+ ][\s#/*;%]*-----BEGIN [A-Z ]*PRIVATE KEY-----\s*$`)

// hiddenLines returns the hidden lines among the added and removed lines of the part, the diff of f.
func (pt *part) hiddenLines(f review.File) (out []Hidden) {
	literals := pt.literals(f)
	kind := pt.lang.Kind
	isScript := kind == lex.Shell || kind == lex.Script || pt.lang == lex.Unknown
	add := func(line int, reason string) {
		if n := len(out); n > 0 && out[n-1].Reason == reason && line <= out[n-1].Last+1 {
			out[n-1].Last = line
			return
		}
		out = append(out, Hidden{line, line, reason})
	}
	spans, open := pt.spans, pt.hidden
	inKey, marks := false, false
	line := 0
	for at, end := 0, 0; at < len(pt.raw); at = end {
		end = lex.LineEnd(pt.raw, at)
		line++
		text, changed := pt.raw[at:end], pt.raw[at] == '+' || pt.raw[at] == '-'
		switch {
		case kind != lex.Code && !isScript, pt.raw[at] == '@', strings.Contains(text, "-----END "):
			marks = false
		case keyMark.MatchString(text):
			marks = true
		case marks && pt.raw[at] == '+' && strings.ContainsAny(text, lex.Letters+lex.Digits) && !lex.ContainsAny(text, judge.Heads("keyheader")) &&
			(len(spans) == 0 || spans[0].start >= end):
			add(line, hiddenKey)
		}
		for ; len(open) > 0 && open[0].end <= at; open = open[1:] {
		}
		if changed && len(open) > 0 && open[0].start < end {
			add(line, open[0].hidden)
		}
		for ; len(spans) > 0 && spans[0].start < end; spans = spans[1:] {
			s := spans[0]
			value, before := pt.raw[s.start:s.end], strings.TrimSpace(pt.raw[at+1:max(at+1, s.start)])
			key := s.Class == "private-key" && (inKey || judge.IsVeryRandom(value))
			inKey = key && len(value) >= 40
			switch {
			case !changed, isNumbers(value), key, strings.HasPrefix(s.Rule, "token "):
			case isActive(value), strings.Contains(s.value, "\n"), lex.ByteAt(pt.raw, s.end) == '(':
				add(line, hiddenValue)
			case kind == lex.Code && !within(literals, s), isScript && (before == "" || strings.IndexByte(";&|(`", lex.LastByte(before)) >= 0):
				add(line, hiddenCode)
			}
		}
	}
	return out
}

// literals returns the literals and comments of code, if anything is masked in it.
func (pt *part) literals(f review.File) (out []span) {
	if pt.lang.Kind != lex.Code || len(pt.spans) == 0 {
		return nil
	}
	sides, err := pt.sidesOf(f)
	if err != nil { // unreachable: the sides were read before
		return nil
	}
	for _, s := range sides {
		var found []span
		for _, t := range lex.Lex(s.text, 0, len(s.text), pt.lang) {
			if t.Kind == lex.Literal || t.Kind == lex.Comment {
				found = append(found, span{start: int(t.Start), end: int(t.End)})
			}
		}
		out = append(out, s.project(found)...)
	}
	slices.SortFunc(out, func(a, b span) int { return a.end - b.end })
	return out
}

// within reports whether one of the ranges, which are sorted by their ends, holds s.
func within(ranges []span, s span) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].end >= s.end })
	return i < len(ranges) && ranges[i].start <= s.start
}

// isActive reports whether a value has a blank or a character that a shell, SQL or the
// syntax of a language acts on, or is too long for anything but a token.
func isActive(text string) bool {
	const long = 256
	return len(text) > long || strings.ContainsAny(text, " \t\r`|;<>(){}[]'\"\\$&*?")
}

// isNumbers reports whether text is a number, or the bytes of a key.
func isNumbers(text string) bool {
	return lex.IsDigit(text[0]) && strings.Trim(text, lex.Hexes+"xXuUlL, \t") == ""
}
