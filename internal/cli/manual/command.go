package manual

import (
	"regexp"
	"slices"
	"strings"
)

// A Command is what can be typed: a program, or one of its commands.
type Command struct {
	Route   []string // the words after the program's name; none for itself
	Summary string
	Flags   []Flag
	Choices []string // of which its argument is one, if these are few
}

// A Flag is one flag of a command.
type Flag struct {
	Name  string // without the dash
	Value string // what its value is called; empty if it takes none
	Help  string // the first line of it
}

var (
	flagLine = regexp.MustCompile(`^  -([a-z][a-z-]*)(?: ([A-Z]+))?(?:  +(.*))?$`)
	flagUse  = regexp.MustCompile(`(?:^|[ [])-([a-z][a-z-]*)(?: ([A-Z_]+))?`)
	choices  = regexp.MustCompile(`(?:^| )((?:[a-z]+\|)+[a-z]+)`)
)

// Commands lists what the pages describe, each command once.
func Commands(pages []Page) []Command {
	var all []Command
	for _, p := range pages {
		for _, line := range p.section("commands") {
			if found := entry.FindStringSubmatch(line); found != nil {
				all = merge(all, Command{Route: found[1:2], Summary: found[2]})
			}
		}
		for _, s := range p.Synopses {
			words := route(s)
			for n := 1; n < len(words); n++ {
				all = merge(all, Command{Route: words[1:n]})
			}
			if before, _ := around(s, words); strings.Contains(before, "[flags]") {
				all = merge(all, Command{Flags: p.flags(isGeneral)})
			}
			all = merge(all, p.command(s, words[1:]))
		}
	}
	return all
}

// command is what one synopsis tells.
func (p *Page) command(synopsis string, route []string) Command {
	c := Command{Route: route}
	own := strings.Fields(p.Name)[1:]
	if slices.Equal(route, own) {
		c.Summary = p.Summary
	} else if found := p.entryOf(route[len(route)-1]); found != "" {
		c.Summary = found
	}
	_, operands := around(synopsis, append([]string{""}, route...))
	general := p.flags(isGeneral)
	special := p.flags(func(title string) bool { return speaksOf(title, route[min(len(own), len(route)):]) })
	switch takesAll := strings.Contains(operands, "[flags]") || len(p.Synopses) == 1; {
	case takesAll && len(special) > 0:
		c.Flags = special
	case takesAll:
		c.Flags = general
	}
	documented := slices.Concat(special, general)
	for _, found := range flagUse.FindAllStringSubmatch(operands, -1) {
		c.Flags = withFlag(c.Flags, Flag{found[1], found[2], helpOf(documented, found[1])})
	}
	if found := choices.FindStringSubmatch(operands); found != nil {
		c.Choices = strings.Split(found[1], "|")
	}
	return c
}

// entryOf finds what a page says of a subcommand, in a line of its own.
func (p *Page) entryOf(name string) string {
	for line := range strings.Lines(p.Prose) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok && strings.HasPrefix(rest, " ") {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// flags lists what stands under the titles that are wanted.
func (p *Page) flags(wanted func(title string) bool) []Flag {
	var all []Flag
	for _, s := range p.Sections {
		if !wanted(s.Title) {
			continue
		}
		for line := range strings.SplitSeq(s.Text, "\n") {
			if found := flagLine.FindStringSubmatch(line); found != nil {
				all = withFlag(all, Flag{found[1], found[2], found[3]})
			}
		}
	}
	return all
}

func isGeneral(title string) bool { return title == "flags" }

// around returns what a synopsis has before and behind the last of its words.
func around(synopsis string, words []string) (before, behind string) {
	if last := words[len(words)-1]; len(words) > 1 {
		before, behind, _ = strings.Cut(synopsis, " "+last)
		return before, behind
	}
	return "", synopsis
}

// speaksOf reports whether a title is "flags of" one of the subcommands.
func speaksOf(title string, subcommands []string) bool {
	of, some := strings.CutPrefix(title, "flags of ")
	named := strings.FieldsFunc(of, func(r rune) bool { return r == ' ' || r == ',' })
	return some && slices.ContainsFunc(subcommands, func(s string) bool { return slices.Contains(named, s) })
}

func helpOf(flags []Flag, name string) string {
	if i := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name }); i >= 0 {
		return flags[i].Help
	}
	return ""
}

func withFlag(flags []Flag, f Flag) []Flag {
	if slices.ContainsFunc(flags, func(have Flag) bool { return have.Name == f.Name }) {
		return flags
	}
	return append(flags, f)
}

// merge adds what c tells to what is known of the same command.
func merge(all []Command, c Command) []Command {
	i := slices.IndexFunc(all, func(have Command) bool { return slices.Equal(have.Route, c.Route) })
	if i < 0 {
		return append(all, c)
	}
	if all[i].Summary == "" {
		all[i].Summary = c.Summary
	}
	for _, f := range c.Flags {
		all[i].Flags = withFlag(all[i].Flags, f)
	}
	all[i].Choices = append(all[i].Choices, c.Choices...)
	return all
}
