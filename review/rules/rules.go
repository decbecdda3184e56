// Package rules loads rule packs: what the model looks for, and what it does not report,
// in files of a kind. Packs are shipped or come from files of the administrator, never
// from the change under review.
//
// For each file the first pack with a matching pattern counts: the administrator's
// packs in the order of the configuration, then the shipped ones.
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
	// Origin is the file and line of the pack, or "shipped".
	Origin string `yaml:"-"`

	files glob.List
}

// Text returns the pack as part of a prompt.
func (p Pack) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Rules %q, for %s\n", p.Name, strings.Join(p.Patterns, " "))
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

// A Book is an ordered list of packs. The zero Book is empty.
type Book struct{ packs []Pack }

//go:embed packs/*.yaml
var shipped embed.FS

// Load returns the packs of the given files, and of the files in the given directories
// that end in .yaml, followed by the shipped packs. A pack with the name of a shipped
// one replaces it. The error lists all problems with file and line.
func Load(paths ...string) (*Book, error) {
	var book Book
	var problems []error
	for _, path := range paths {
		files, err := filesOf(path)
		problems = append(problems, err)
		for _, file := range files {
			problems = append(problems, book.readFile(file))
		}
	}
	own := book.packs
	standard, err := readShipped()
	problems = append(problems, err)
	for _, p := range standard {
		if !slices.ContainsFunc(own, func(o Pack) bool { return o.Name == p.Name }) {
			book.packs = append(book.packs, p)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("read rules:\n%w", err)
	}
	return &book, nil
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

func (b *Book) readFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s: everyone may write to it, and its content is part of the prompt: run chmod o-w", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return b.parse(name, data)
}

func readShipped() ([]Pack, error) {
	var book Book
	err := fs.WalkDir(shipped, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := shipped.ReadFile(name)
		return errors.Join(err, book.parse(name, data))
	})
	for i := range book.packs {
		book.packs[i].Origin = "shipped"
	}
	return book.packs, err
}

// Packs returns the packs in their order.
func (b *Book) Packs() []Pack { return slices.Clone(b.packs) }

// For returns the pack of a file, and the pattern that matched.
func (b *Book) For(depotPath string) (pack Pack, pattern string, ok bool) {
	for _, p := range b.packs {
		if pattern, ok := p.files.Match(depotPath); ok {
			return p, pattern, true
		}
	}
	return Pack{}, "", false
}
