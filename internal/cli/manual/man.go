package manual

import (
	"fmt"
	"strings"
)

// Man returns the page for man, in section 1. date is when the build was made;
// others are the pages to see besides.
func (p Page) Man(date string, others []Page) string {
	var out strings.Builder
	name := p.ManName()
	fmt.Fprintf(&out, ".TH %s 1 \"%s\" Criticizer\n", roff(strings.ToUpper(name)), date)
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", roff(name), roff(p.headline()))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.nf\n%s.fi\n", roffLines(strings.Join(p.Synopses, "\n")))
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s", roffText(p.Prose))
	for _, s := range p.Sections {
		fmt.Fprintf(&out, ".SH %s\n%s", roff(strings.ToUpper(s.Title)), roffText(s.Text))
	}
	var names []string
	for _, other := range others {
		if other.Name != p.Name {
			names = append(names, ".BR "+roff(other.ManName())+" (1)")
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&out, ".SH SEE ALSO\n%s\n", strings.Join(names, ",\n"))
	}
	return out.String()
}

// ManName is what man finds the page by.
func (p Page) ManName() string { return strings.ReplaceAll(p.Name, " ", "-") }

// headline is the summary, or else the first sentence.
func (p Page) headline() string {
	if p.Summary != "" {
		return p.Summary
	}
	sentence, _, _ := strings.Cut(strings.Join(strings.Fields(p.Prose), " "), ". ")
	return strings.TrimSuffix(sentence, ".")
}

// roffText sets paragraphs as such, and what is indented as it stands.
func roffText(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains("\n"+paragraph, "\n ") {
			fmt.Fprintf(&out, ".PP\n.nf\n%s.fi\n", roffLines(paragraph))
		} else {
			fmt.Fprintf(&out, ".PP\n%s", roffLines(paragraph))
		}
	}
	return out.String()
}

func roffLines(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		out.WriteString(roff(line) + "\n")
	}
	return out.String()
}

// roff keeps text from being read as a request of roff.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}
