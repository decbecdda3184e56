package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/glob"
)

// Limits in bytes: a pack is part of every prompt about its files.
const (
	maxItemBytes = 500
	maxPackBytes = 6_000
)

var packName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// A parser reads one file of packs:
//
//	# a comment
//	pack payments
//	files //depot/payments/** *.pay
//
//	look for
//	- One remark, which may continue
//	  in lines that begin with a space.
//
//	do not report
//	- Another.
type parser struct {
	name     string
	line     int
	packs    []Pack
	list     *[]string // the list of the next item; nil before the first list
	problems []error
}

// parse adds the packs of a file. The error joins all problems.
func (b *Book) parse(name, text string) error {
	p := parser{name: name}
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		p.line++
		p.read(strings.TrimRight(line, " \t\r"))
	}
	p.endPack()
	for _, pack := range p.packs {
		if slices.ContainsFunc(b.packs, func(other Pack) bool { return other.Name == pack.Name }) {
			p.problems = append(p.problems, fmt.Errorf("%s: pack %s is in an earlier file too: rename or delete one", pack.Origin, pack.Name))
		}
	}
	if len(p.packs) == 0 && len(p.problems) == 0 {
		p.report("the file holds no pack: begin one with a line such as: pack payments")
	}
	b.packs = append(b.packs, p.packs...)
	return errors.Join(p.problems...)
}

func (p *parser) report(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %s", p.name, p.line, fmt.Sprintf(format, args...)))
}

func (p *parser) read(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.ContainsFunc(line, func(r rune) bool { return r == utf8.RuneError || r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) }):
		p.report("the line has an invisible character, or is not UTF-8: write plain text")
	case line == "" || line[0] == '#':
	case word == "pack":
		p.beginPack(strings.TrimSpace(rest))
	case len(p.packs) == 0:
		p.report("%q comes before the first pack: begin with a line such as: pack payments", line)
	case word == "files":
		p.readFiles(strings.Fields(rest))
	case strings.TrimSuffix(line, ":") == "look for":
		p.list = &p.pack().LookFor
	case strings.TrimSuffix(line, ":") == "do not report":
		p.list = &p.pack().DoNotReport
	case p.list != nil && strings.HasPrefix(line, "- "):
		*p.list = append(*p.list, strings.TrimSpace(line[2:]))
		p.checkItem()
	case p.list != nil && len(*p.list) > 0 && (line[0] == ' ' || line[0] == '\t'):
		(*p.list)[len(*p.list)-1] += " " + strings.TrimSpace(line)
		p.checkItem()
	default:
		p.report("%q is not one of: pack NAME, files PATTERNS, look for, do not report, or - and a remark below one of these two", line)
	}
}

func (p *parser) pack() *Pack { return &p.packs[len(p.packs)-1] }

func (p *parser) beginPack(name string) {
	p.endPack()
	if !packName.MatchString(name) {
		p.report("%q is not a pack name: write lower-case letters, digits, - and _", name)
	}
	if slices.ContainsFunc(p.packs, func(other Pack) bool { return other.Name == name }) {
		p.report("pack %s is defined above: rename or delete one", name)
	}
	p.packs = append(p.packs, Pack{Name: name, Origin: fmt.Sprintf("%s:%d", p.name, p.line)})
	p.list = nil
}

// endPack checks the last pack.
func (p *parser) endPack() {
	if len(p.packs) == 0 {
		return
	}
	switch pack := p.pack(); {
	case len(pack.Patterns) == 0:
		p.problems = append(p.problems, fmt.Errorf("%s: pack %s has no files: add a line such as: files *.go", pack.Origin, pack.Name))
	case len(pack.LookFor)+len(pack.DoNotReport) == 0:
		p.problems = append(p.problems, fmt.Errorf("%s: pack %s has no rule: add one below look for or do not report", pack.Origin, pack.Name))
	case len(pack.Text()) > maxPackBytes:
		p.problems = append(p.problems, fmt.Errorf("%s: pack %s has %d bytes, more than %d: it is part of every prompt about its files, so keep what matters most",
			pack.Origin, pack.Name, len(pack.Text()), maxPackBytes))
	}
}

func (p *parser) readFiles(patterns []string) {
	list, err := glob.ParseList(patterns)
	if err != nil {
		p.report("%v", err)
	}
	pack := p.pack()
	pack.files, pack.Patterns = append(pack.files, list...), append(pack.Patterns, patterns...)
}

func (p *parser) checkItem() {
	if item := (*p.list)[len(*p.list)-1]; len(item) > maxItemBytes {
		p.report("the remark has %d bytes, more than %d: split it", len(item), maxItemBytes)
	}
}
