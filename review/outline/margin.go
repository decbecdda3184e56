package outline

import (
	"regexp"
	"strings"
)

var (
	// words matches identifiers.
	words = regexp.MustCompile(`[\pL_$][\pL\p{Nd}_$]*`)
	// headName matches the name in the first line of a definition.
	headName = regexp.MustCompile(`([\pL_$][\pL\p{Nd}_$.:]*)\s*(?:[({=:]|$)`)
)

// byMargin returns the outline of a text in an unknown language. A definition is a line
// at the margin with the lines below it that are indented, empty or close brackets.
func byMargin(text string) Outline {
	o := Outline{Names: map[int][]string{}}
	open := -1 // index of the definition that the line may belong to
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			continue
		}
		o.Names[n] = words.FindAllString(line[:min(len(line), 4096)], 256)
		if open >= 0 && strings.ContainsAny(line[:1], " \t)]}") || strings.HasPrefix(line, "end") && open >= 0 {
			o.Definitions[open].Last = n
			continue
		}
		d := Definition{Kind: Function, First: n, Last: n, Body: n}
		if m := headName.FindStringSubmatch(line[:min(len(line), 1024)]); m != nil {
			d.Name = m[1]
		}
		o.Definitions = append(o.Definitions, d)
		open = len(o.Definitions) - 1
	}
	for i := range o.Definitions {
		if d := &o.Definitions[i]; d.First == d.Last {
			d.Kind = Value
		}
	}
	return o
}
