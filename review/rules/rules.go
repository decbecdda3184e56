// Package rules holds what reviewers are told to look for, and what not to
// report, in files of a kind. Packs of rules come with the product and from
// files that its administrator names, never from the change under review.
//
// For every file the first pack counts that has a pattern for its path: those
// of the administrator, in the order of the configuration, then the shipped.
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

// A Pack is the rules for some files.
type Pack struct {
	Name string
	// Origin is the file it stands in, with the line, or "shipped".
	Origin      string
	Patterns    []string
	LookFor     []string
	DoNotReport []string

	files glob.List
}

// Text is the pack as reviewers are told it.
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

// A Book is packs in the order in which they are tried. The zero Book is empty.
type Book struct{ packs []Pack }

//go:embed packs/*.rules
var shipped embed.FS

// Load returns the packs of the given files and directories, of which files
// that end in .rules are read, before the shipped ones. A pack that has the name
// of a shipped one replaces it. The error names everything that is wrong, with
// file and line.
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
	files, err := filepath.Glob(filepath.Join(path, "*.rules"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file in it ends in .rules", path)
	}
	return files, err
}

func (b *Book) readFile(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s: everybody may write it, and what it says reaches the model: chmod o-w it", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return b.parse(name, string(data))
}

func readShipped() ([]Pack, error) {
	var book Book
	err := fs.WalkDir(shipped, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := shipped.ReadFile(name)
		if err != nil {
			return err
		}
		return book.parse(name, string(data))
	})
	for i := range book.packs {
		book.packs[i].Origin = "shipped"
	}
	return book.packs, err
}

// Packs lists the packs in the order in which they are tried.
func (b *Book) Packs() []Pack { return slices.Clone(b.packs) }

// For returns the pack that counts for a file, and the pattern that decided.
func (b *Book) For(depotPath string) (pack Pack, pattern string, ok bool) {
	for _, p := range b.packs {
		if pattern, ok := p.files.Match(depotPath); ok {
			return p, pattern, true
		}
	}
	return Pack{}, "", false
}
