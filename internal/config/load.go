package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/criticizer/criticizer/internal/secret"
)

// Load reads the file at path, or at $CRITICIZER_CONFIG if path is empty, or at
// DefaultPath if that is empty too; then the environment over it, and the
// secrets. The error lists every field that cannot be read, each as "field:
// what is wrong: what to do"; it never holds a secret.
func Load(path string, getenv func(string) string) (*Config, error) {
	path, data, err := read(path, getenv)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	fields := fieldsOf(c)
	problems := setDefaults(fields)
	problems = append(problems, setFromYAML(fields, data)...)
	problems = append(problems, setFromEnvironment(fields, getenv)...)
	if len(problems) > 0 {
		return nil, fmt.Errorf("read configuration %s:\n%w", path, errors.Join(problems...))
	}
	return c, nil
}

// read finds the file and reads it. Only DefaultPath may be missing.
func read(path string, getenv func(string) string) (string, []byte, error) {
	if path == "" {
		path = getenv("CRITICIZER_CONFIG")
	}
	optional := path == ""
	if optional {
		path = DefaultPath
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if optional {
			return path, nil, nil
		}
		return path, nil, fmt.Errorf("read configuration: %s does not exist: correct -config or CRITICIZER_CONFIG", path)
	}
	if err != nil {
		return path, nil, fmt.Errorf("read configuration: %w", err)
	}
	return path, data, nil
}

func setDefaults(fields []field) (problems []error) {
	for _, f := range fields {
		if f.standard == "" {
			continue
		}
		if err := f.set(f.standard); err != nil {
			problems = append(problems, fmt.Errorf("%s: its default: %w", f.name, err))
		}
	}
	return problems
}

// setFromEnvironment sets the fields whose variable is not empty.
func setFromEnvironment(fields []field, getenv func(string) string) (problems []error) {
	for _, f := range fields {
		var err error
		if s, ok := f.secret(); ok {
			*s, err = secret.Lookup(f.variable, getenv)
		} else if text := getenv(f.variable); text != "" {
			if err = f.set(f.split(text)...); err != nil {
				err = fmt.Errorf("%s (%s): %w", f.variable, f.name, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
