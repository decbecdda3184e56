// Package outline lists the definitions, imports and identifiers of a source file, for
// the languages of languages.txt. Tree-sitter grammars, compiled to WebAssembly
// (grammars/build.sh), do the parsing in a sandbox: a parse has limits on time and
// memory, and cannot crash the process. Files of other languages, and files that a
// grammar cannot parse within the limits, are read by their indentation (margin.go).
package outline

import (
	"context"
	"strings"
)

// A Kind is what a definition defines. grammars/outline.c has the same numbers.
type Kind uint32

// The kinds.
const (
	Function Kind = iota + 1
	Type
	Value // a variable, constant, field or macro
	imported
	wrapper
	scope
	identifier
)

// A Definition is the place where a name is defined. Lines count from 1.
type Definition struct {
	Kind Kind
	Name string // empty if it is not known
	// First and Last are its lines. Body is the first line of its body, or Last.
	First, Last, Body int
}

// Contains reports whether the line is in the definition.
func (d Definition) Contains(line int) bool { return d.First <= line && line <= d.Last }

// An Import is a statement that imports a file, a package or names.
type Import struct {
	First, Last int
	Text        string
}

// An Outline is the outline of a file.
type Outline struct {
	Definitions []Definition // by place; an outer one before those in it
	Imports     []Import
	// Names are the identifiers on each line, in comments and strings excluded.
	Names map[int][]string
	// Parsed is set if a grammar read the text.
	Parsed bool
}

// maxBytes is the largest text that is read. A larger one has an empty outline.
const maxBytes = 2 << 20

// Of returns the outline of a text. It does not fail: a text that no grammar can parse
// within the limits is read by its indentation.
func Of(ctx context.Context, depotPath, text string) Outline {
	return read(ctx, depotPath, text, func(text string) string { return text })
}

// Around returns the outline of a text, at a fraction of the work: nothing is known of what
// is in the functions that hold none of the lines, which are sorted.
func Around(ctx context.Context, depotPath, text string, lines []int) Outline {
	return read(ctx, depotPath, text, func(text string) string { return skim(text, lines) })
}

func read(ctx context.Context, depotPath, text string, shorten func(string) string) Outline {
	l := languageOf(depotPath)
	switch {
	case len(text) > maxBytes:
		return Outline{}
	case l == nil:
		return byMargin(text)
	}
	short := shorten(text)
	records, err := shared().parse(ctx, l, l.prepare(short))
	if err != nil {
		return byMargin(text)
	}
	o := outlineOf(short, records).with(atMargin(text))
	o.Parsed = true
	return o
}

// A record is a record of grammars/outline.c: the kind, the first and last row of the
// node, the first row of its body, and where its name begins and ends.
type record [recordWords]uint32

const recordWords = 6

func outlineOf(text string, records []record) Outline {
	o := Outline{Names: map[int][]string{}}
	for _, r := range records {
		if r[4] > r[5] || int(r[5]) > len(text) {
			continue
		}
		word, first, last := text[r[4]:r[5]], int(r[1])+1, int(r[2])+1
		switch kind := Kind(r[0]); kind {
		case imported:
			o.Imports = append(o.Imports, Import{first, last, word})
		case identifier:
			o.Names[first] = append(o.Names[first], word)
		default:
			if strings.ContainsAny(word, "\n") {
				word = ""
			}
			o.Definitions = append(o.Definitions, Definition{kind, word, first, last, max(first, min(int(r[3])+1, last))})
		}
	}
	return o
}

// with adds the definitions of several lines that no definition of o overlaps: a grammar
// finds none in text that it cannot parse, nor in statements outside of functions.
func (o Outline) with(margin []Definition) Outline {
	end := 0 // last line of the definitions so far
	i := 0
	var out []Definition
	for _, m := range margin {
		for ; i < len(o.Definitions) && o.Definitions[i].First <= m.Last; i++ {
			end = max(end, o.Definitions[i].Last)
			out = append(out, o.Definitions[i])
		}
		if m.Kind == Function && m.First > end {
			out = append(out, m)
		}
	}
	o.Definitions = append(out, o.Definitions[i:]...)
	return o
}

// Enclosing returns the definition around the line: the outermost function of at most
// the given number of lines, else the innermost function, else the innermost type.
func (o Outline) Enclosing(line, lines int) (Definition, bool) {
	var best Definition
	rank := 0
	for _, d := range o.Definitions {
		r := 0
		switch {
		case !d.Contains(line) || d.Kind == Value || d.First == d.Last && d.Kind == Type:
		case d.Kind == Function && d.Last-d.First < lines:
			r = 3
		case d.Kind == Function:
			r = 2
		default:
			r = 1
		}
		if r > rank || r == rank && r > 0 && r < 3 {
			best, rank = d, r
		}
	}
	return best, rank > 0
}
