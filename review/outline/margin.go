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

// byMargin returns the outline of a text in an unknown language.
func byMargin(text string) Outline {
	o := Outline{Definitions: atMargin(text), Names: map[int][]string{}}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if found := words.FindAllString(line[:min(len(line), 4096)], 256); found != nil {
			o.Names[i+1] = found
		}
	}
	for i, d := range o.Definitions {
		line := strings.TrimRight(lines[d.First-1], " \t\r\n")
		if m := headName.FindStringSubmatch(line[:min(len(line), 1024)]); m != nil {
			o.Definitions[i].Name = m[1]
		}
	}
	return o
}

// atMargin returns the definitions of a text in any language, without names. A definition is
// a line at the margin with the lines below it that are indented, empty or close brackets.
func atMargin(text string) (found []Definition) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case line == "":
		case found != nil && (strings.ContainsAny(line[:1], " \t)]}") || strings.HasPrefix(line, "end")):
			found[len(found)-1].Last = n
			found[len(found)-1].Kind = Function
		default:
			found = append(found, Definition{Kind: Value, First: n, Last: n, Body: n})
		}
	}
	return found
}
