package eval

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed builtin/*.txtar
var builtIn embed.FS

// BuiltIn returns the cases that are part of the command.
func BuiltIn() ([]Case, error) {
	dir, err := fs.Sub(builtIn, "builtin")
	if err != nil {
		return nil, err
	}
	return Read(context.Background(), dir, "")
}

// Read returns the cases below a directory, sorted by name. A case is a directory with
// case.yaml, or a txtar archive of one. Commits are read from repositories below the
// directory repositories. The error lists all problems with case, file and line.
func Read(ctx context.Context, dir fs.FS, repositories string) ([]Case, error) {
	var cases []Case
	var problems []error
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var files map[string]string
		switch {
		case d.IsDir():
			files, err = readDir(dir, name)
		case path.Ext(name) == ".txtar":
			files, err = readArchive(dir, name)
		}
		if err != nil || files == nil {
			return err
		}
		c, err := newCase(ctx, strings.TrimSuffix(name, ".txtar"), files, repositories)
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
		return nil, errors.New("read cases: found none: want directories with case.yaml, or .txtar archives")
	}
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("read cases:\n%w", err)
	}
	return cases, nil
}

func readArchive(dir fs.FS, name string) (map[string]string, error) {
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

// readDir returns the files of a case, nil if the directory is not a case.
func readDir(dir fs.FS, name string) (map[string]string, error) {
	if _, err := fs.Stat(dir, path.Join(name, caseFile)); err != nil {
		return nil, nil
	}
	files := map[string]string{}
	return files, fs.WalkDir(dir, name, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, at)
		files[strings.TrimPrefix(strings.TrimPrefix(at, name), "/")] = string(data)
		return err
	})
}
