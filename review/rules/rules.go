// Package rules loads rule packs: what the model looks for, and what it does not report,
// in files of a kind. Packs are shipped, come from files of the administrator, or from
// files of teams in the depot, never from the change under review.
//
// For each file the first pack with a matching pattern applies, and of the packs that it
// names in also those that match: the administrator's packs in the order of the
// configuration, then the shipped ones. Packs of teams add to these.
package rules

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/glob"
)

// A Pack holds the rules for some files.
type Pack struct {
	Name        string   `yaml:"name"`
	Patterns    []string `yaml:"files"`
	LookFor     []string `yaml:"look_for"`
	DoNotReport []string `yaml:"do_not_report"`
	// Also names packs that apply, too, to files that match them.
	Also []string `yaml:"also"`
	// Origin is the file and line of the pack, or "shipped".
	Origin string `yaml:"-"`

	files glob.List
}

// Text returns the pack as part of a prompt.
func (p Pack) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Rules %q, for %s", p.Name, strings.Join(p.Patterns, " "))
	if len(p.Also) > 0 {
		fmt.Fprintf(&out, "; also %s", strings.Join(p.Also, ", "))
	}
	out.WriteString("\n")
	writeList(&out, "Look for:", p.LookFor)
	writeList(&out, "Do not report:", p.DoNotReport)
	return out.String()
}

func writeList(out *strings.Builder, head string, items []string) {
	if len(items) == 0 {
		return
	}
	out.WriteString(head + "\n")
	for _, item := range items {
		out.WriteString("- " + item + "\n")
	}
}

// A Set is an ordered list of packs, and the packs of teams. The zero Set is empty.
type Set struct{ packs, team []Pack }

// A Match is a pack that applies to a file, and its pattern that the path matches.
type Match struct {
	Pack
	Pattern string
}

//go:embed packs/*.yaml
var shipped embed.FS

// Load returns the packs of the given files, and of the files in the given directories
// that end in .yaml, followed by the shipped packs. A pack with the name of a shipped
// one replaces it. The error lists all problems with file and line.
func Load(paths ...string) (*Set, error) {
	var set Set
	var problems []error
	for _, path := range paths {
		files, err := filesOf(path)
		problems = append(problems, err)
		for _, file := range files {
			problems = append(problems, set.readFile(file))
		}
	}
	own := set.packs
	standard, err := readShipped()
	problems = append(problems, err)
	for _, p := range standard {
		if !slices.ContainsFunc(own, func(o Pack) bool { return o.Name == p.Name }) {
			set.packs = append(set.packs, p)
		}
	}
	for _, p := range set.packs {
		for _, name := range p.Also {
			if !slices.ContainsFunc(set.packs, func(o Pack) bool { return o.Name == name }) {
				problems = append(problems, fmt.Errorf("%s: pack %q adds %q, which does not exist", p.Origin, p.Name, name))
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("read rules:\n%w", err)
	}
	return &set, nil
}

// filesOf returns path, or the rule files in it if it is a directory.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file in it ends in .yaml", path)
	}
	return files, err
}

func (b *Set) readFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s: everyone may write to it, and its content is part of the prompt: run chmod o-w %[1]q", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return b.parse(name, data)
}

func readShipped() ([]Pack, error) {
	var set Set
	err := fs.WalkDir(shipped, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := shipped.ReadFile(name)
		return errors.Join(err, set.parse(name, data))
	})
	for i := range set.packs {
		set.packs[i].Origin = "shipped"
	}
	return set.packs, err
}

// TeamPrefix begins the names of packs of teams, so that they replace no other.
const TeamPrefix = "depot:"

// WithTeam returns b with the packs of a file of a team. They add to the others: they
// cannot replace one. origin names the file and its revision.
func (b *Set) WithTeam(origin, text string) (*Set, error) {
	var own Set
	if err := own.parse(origin, []byte(text)); err != nil {
		return nil, err
	}
	out := &Set{b.packs, slices.Clone(b.team)}
	for _, p := range own.packs {
		p.Name, p.Also = TeamPrefix+p.Name, nil
		if slices.ContainsFunc(out.team, func(o Pack) bool { return o.Name == p.Name }) {
			return nil, fmt.Errorf("%s: pack %q is defined before in another file", p.Origin, p.Name)
		}
		out.team = append(out.team, p)
	}
	return out, nil
}

// Packs returns the packs in their order, the packs of teams first.
func (b *Set) Packs() []Pack { return slices.Concat(b.team, b.packs) }

// For returns the packs that apply to a file: all packs of teams with a matching pattern,
// the first of the other packs, and the packs that this one adds by also.
func (b *Set) For(depotPath string) (found []Match) {
	for _, p := range b.team {
		if pattern, ok := p.files.Match(depotPath); ok {
			found = append(found, Match{p, pattern})
		}
	}
	var also []string
	first := true
	for _, p := range b.packs {
		pattern, ok := p.files.Match(depotPath)
		if ok && (first || slices.Contains(also, p.Name)) {
			found = append(found, Match{p, pattern})
			also, first = append(also, p.Also...), false
		}
	}
	return found
}
