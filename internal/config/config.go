// Package config reads the configuration of a program: a YAML file and environment
// variables that override it. Secrets come from the environment only (security 9.3.1).
//
// A program passes a struct whose fields are sections. The struct of a section belongs to
// the package that uses it, and is the only description of its settings. Its tags give
// names, defaults and checks, and its comments the text of the reference page:
//
//	yaml      name in the file, or ",inline" for a struct whose fields belong to the section
//	          around it; a field without this tag is not a setting
//	env       environment variable; default: PREFIX_SECTION_FIELD
//	default   default value, as written in the file
//	required  the field must be set; the text completes the hint "set it to ..."
//	check     positive, not-negative, port, http-url or address; of a text, if it is set
//	max       largest duration
//	oneof     allowed values
//
// A section with a method Check(*Problems) checks what tags cannot say. A section with a
// method Connections() []Connection lists the connections that have to be encrypted.
//
// [Program.Read] reads the file and the environment, [Program.Check] reports everything
// that is wrong, and [Program.Reference] writes the tables of the reference page. [Default]
// and [Validate] do the same for one section, for tests and constructors.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A Program says where the configuration of a program is.
type Program struct {
	// Prefix of its environment variables, such as CRITICIZER.
	Prefix string
	// DefaultPath is the file if neither --config nor PREFIX_CONFIG names one. Only this
	// file may be missing.
	DefaultPath string
	// Page is the reference page, for hints.
	Page string
	// Shared is set if the file also holds sections of other programs. They are ignored, so
	// that a section of a newer release does not stop an older program.
	Shared bool
}

// Read sets the struct that into points to from the file at path, at $PREFIX_CONFIG if path
// is empty, or at DefaultPath if both are empty. Then it reads the environment, which
// overrides the file. The error lists every field that cannot be read, each as "field:
// problem: hint", and never holds a secret.
func (p Program) Read(into any, path string, getenv func(string) string) error {
	path, data, err := p.readFile(path, getenv)
	if err != nil {
		return err
	}
	fields := p.fieldsOf(into)
	problems := setDefaults(fields)
	problems = append(problems, p.setFromYAML(fields, data)...)
	problems = append(problems, setFromEnvironment(fields, getenv)...)
	if len(problems) > 0 {
		return fmt.Errorf("read configuration %s:\n%w", path, errors.Join(problems...))
	}
	return nil
}

// File returns the file that [Program.Read] reads. It may be missing only if it is DefaultPath.
func (p Program) File(path string, getenv func(string) string) string {
	return cmp.Or(path, getenv(p.Prefix+"_CONFIG"), p.DefaultPath)
}

func (p Program) readFile(path string, getenv func(string) string) (string, []byte, error) {
	optional := path == "" && getenv(p.Prefix+"_CONFIG") == ""
	path = p.File(path, getenv)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return path, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return path, nil, fmt.Errorf("read configuration: %s does not exist: correct --config or %s_CONFIG", path, p.Prefix)
	case err != nil:
		return path, nil, fmt.Errorf("read configuration: %w", err)
	}
	return path, data, nil
}

func setDefaults(fields []Setting) (problems []error) {
	for _, f := range fields {
		if text, ok := f.tag.Lookup("default"); ok {
			if err := f.setText(text); err != nil {
				problems = append(problems, fmt.Errorf("%s: default: %w", f.Name, err))
			}
		}
	}
	return problems
}

// setFromEnvironment sets the fields whose variable is not empty.
func setFromEnvironment(fields []Setting, getenv func(string) string) (problems []error) {
	for _, f := range fields {
		var err error
		if s, ok := f.secret(); ok {
			*s, err = secret.Lookup(f.Variable, getenv)
		} else if text := getenv(f.Variable); text != "" {
			if err = f.setText(text); err != nil {
				err = fmt.Errorf("%s (%s): %w", f.Variable, f.Name, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// Default returns the section T of an empty file. It panics if a tag is wrong.
func Default[T any]() T {
	var section T
	if problems := setDefaults(Program{}.fieldsOf(&section)); len(problems) > 0 {
		panic(errors.Join(problems...))
	}
	return section
}

// A Secret is a secret with the environment variable it came from.
type Secret struct {
	Variable string
	secret.Value
}

// Secrets returns the set secrets of the struct that from points to, or only those of the
// sections, if any are listed.
func (p Program) Secrets(from any, sections ...string) []Secret {
	var set []Secret
	for _, f := range p.fieldsOf(from) {
		if s, ok := f.secret(); ok && s.IsSet() && isIn(f.Name, sections) {
			set = append(set, Secret{f.Variable, *s})
		}
	}
	return set
}

// isIn reports whether a field or section is listed, or the section around it. No list
// stands for all.
func isIn(name string, sections []string) bool {
	section, _, _ := strings.Cut(name, ".")
	return len(sections) == 0 || slices.Contains(sections, section) || slices.Contains(sections, name)
}
