package eval

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// The files of a case.
const (
	diffFile        = "change.diff"
	descriptionFile = "description.txt"
	caseFile        = "case.yaml"
)

//go:embed builtin/*.txtar
var builtIn embed.FS

// BuiltIn returns the cases that come with the command.
func BuiltIn() ([]Case, error) {
	dir, err := fs.Sub(builtIn, "builtin")
	if err != nil {
		return nil, err
	}
	return Read(dir)
}

// Read returns the cases below a directory, sorted by name. Each is a directory
// with the files change.diff, description.txt and case.yaml, or an archive of
// these in the txtar format. The error lists everything that is wrong, each
// with its case, file and line.
func Read(dir fs.FS) ([]Case, error) {
	var cases []Case
	var problems []error
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files, err := filesOf(dir, name, d)
		if err != nil || files == nil {
			return err
		}
		c, err := newCase(strings.TrimSuffix(name, ".txtar"), files)
		cases, problems = append(cases, c), append(problems, err)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read cases: %w", err)
	case len(cases) == 0:
		return nil, errors.New("read cases: there is none: want directories with case.yaml, or .txtar archives")
	}
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("read cases:\n%w", err)
	}
	return cases, nil
}

// filesOf returns the files of the case that name is, nil if it is none.
func filesOf(dir fs.FS, name string, d fs.DirEntry) (map[string]string, error) {
	if d.IsDir() {
		return filesIn(dir, name)
	}
	if path.Ext(name) != ".txtar" {
		return nil, nil
	}
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		files[f.Name] = string(f.Data)
	}
	return files, nil
}

// filesIn reads a directory that has one of a case's files.
func filesIn(dir fs.FS, name string) (map[string]string, error) {
	entries, err := fs.ReadDir(dir, name)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == caseFile || e.Name() == diffFile }) {
		return nil, nil
	}
	files := map[string]string{}
	for _, e := range entries {
		data := []byte(nil)
		if !e.IsDir() {
			if data, err = fs.ReadFile(dir, path.Join(name, e.Name())); err != nil {
				return nil, err
			}
		}
		files[e.Name()] = string(data)
	}
	return files, nil
}
