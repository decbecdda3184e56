// Package manual makes man pages and shell completion of the usage texts that -h
// prints: they are the one source, and have this form:
//
//	usage: criticizer deadletter list [flags]
//	       criticizer deadletter show ID [-json]
//
//	What it does, in sentences.
//
//	flags:
//	  -class CLASS   of this error class
//
//	examples:
//	  criticizer deadletter list -class AUTH_DENIED
//
//	Exit status: 0 done, 1 failed, 2 wrong usage.
//
// A title other than flags, commands and examples may stand between them. The
// flags of one subcommand alone stand under "flags of list:"; what stands under
// "flags:" it has only where its synopsis names it.
package manual

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Page is the help of one command and its subcommands.
type Page struct {
	Name     string    // such as "criticizer deadletter"
	Summary  string    // one line, empty if nothing says it
	Synopses []string  // what stands behind "usage:"
	Prose    string    // what stands before the first section
	Sections []Section // in the order of the page
}

// A Section is a part of a page under a title.
type Section struct {
	Title string // such as "flags"
	Text  string // its lines as they stand
}

// exitStatus is the title of the section that is written as one sentence.
const exitStatus = "exit status"

var (
	title    = regexp.MustCompile(`^([a-z][a-z ,-]*[a-z]):$`)
	exitLine = regexp.MustCompile(`^(Exit status[a-z ,-]*): (.+)$`)
	entry    = regexp.MustCompile(`^  ([a-z-]+)  +(\S.*)$`)
	optional = regexp.MustCompile(`\[[^]]*\]`)
	word     = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// Parse reads a usage text.
func Parse(usage string) (Page, error) {
	head, body, _ := strings.Cut(usage, "\n\n")
	head, ok := strings.CutPrefix(head, "usage: ")
	if !ok {
		return Page{}, fmt.Errorf("read help: it begins with %.20q, want \"usage: \"", usage)
	}
	var p Page
	for line := range strings.SplitSeq(head, "\n") {
		p.Synopses = append(p.Synopses, strings.TrimSpace(line))
	}
	p.Name = p.name()
	for line := range strings.SplitSeq(strings.Trim(body, "\n"), "\n") {
		p.add(line)
	}
	p.trim()
	return p, nil
}

// name is what all synopses begin with.
func (p *Page) name() string {
	common := route(p.Synopses[0])
	for _, s := range p.Synopses[1:] {
		other := route(s)
		n := 0
		for n < min(len(common), len(other)) && common[n] == other[n] {
			n++
		}
		common = common[:n]
	}
	if len(p.Synopses) == 1 {
		common = common[:min(len(common), 2)]
	}
	return strings.Join(common, " ")
}

// add takes up the next line of the body.
func (p *Page) add(line string) {
	if found := title.FindStringSubmatch(line); found != nil {
		p.Sections = append(p.Sections, Section{Title: found[1]})
		return
	}
	if found := exitLine.FindStringSubmatch(line); found != nil {
		p.Sections = append(p.Sections, Section{Title: strings.ToLower(found[1]), Text: found[2] + "\n"})
		return
	}
	if len(p.Sections) == 0 {
		p.Prose += line + "\n"
		return
	}
	last := &p.Sections[len(p.Sections)-1]
	last.Text += line + "\n"
}

func (p *Page) trim() {
	p.Prose = strings.Trim(p.Prose, "\n")
	for i := range p.Sections {
		p.Sections[i].Text = strings.Trim(p.Sections[i].Text, "\n")
	}
}

// Lacks lists what every page has to have and this one has not.
func (p *Page) Lacks() []string {
	var lacks []string
	if p.Prose == "" {
		lacks = append(lacks, "a sentence about what it does")
	}
	for _, want := range []string{"examples", exitStatus} {
		if !slices.ContainsFunc(p.Sections, func(s Section) bool { return strings.HasPrefix(s.Title, want) }) {
			lacks = append(lacks, "the section "+want)
		}
	}
	takesFlags := strings.Contains(strings.Join(p.Synopses, " "), "-")
	if takesFlags && !slices.ContainsFunc(p.Sections, func(s Section) bool { return strings.HasPrefix(s.Title, "flags") }) {
		lacks = append(lacks, "the section flags")
	}
	return lacks
}

// Of returns the page as that of a program that was installed under a name.
func (p Page) Of(program string) Page {
	_, command, some := strings.Cut(p.Name, " ")
	p.Name = program
	if some {
		p.Name += " " + command
	}
	return p
}

// section returns the lines under a title.
func (p *Page) section(title string) []string {
	i := slices.IndexFunc(p.Sections, func(s Section) bool { return s.Title == title })
	if i < 0 {
		return nil
	}
	return strings.Split(p.Sections[i].Text, "\n")
}

// route is the program and the commands that a synopsis names.
func route(synopsis string) []string {
	var words []string
	for w := range strings.FieldsSeq(optional.ReplaceAllString(synopsis, "")) {
		if !word.MatchString(w) {
			break
		}
		words = append(words, w)
	}
	return words
}

// Collect reads the help of a program: its own and that of every command that
// this one lists. help returns what the program prints when it is run with the
// arguments.
func Collect(help func(args ...string) (string, error)) ([]Page, error) {
	text, err := help("-h")
	if err != nil {
		return nil, err
	}
	root, err := Parse(text)
	if err != nil {
		return nil, err
	}
	pages := []Page{root}
	for _, line := range root.section("commands") {
		found := entry.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text, err := help(found[1], "-h")
		if err != nil {
			return nil, err
		}
		page, err := Parse(text)
		if err != nil {
			return nil, err
		}
		page.Summary = found[2]
		pages = append(pages, page)
	}
	return pages, nil
}
