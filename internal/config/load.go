package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/criticizer/criticizer/internal/secret"
)

// Load reads the file at path, at $CRITICIZER_CONFIG if path is empty, or at
// DefaultPath if both are empty. Then it reads the environment, which overrides the
// file. The error lists every field that cannot be read, each as "field: problem:
// hint", and never holds a secret.
func Load(path string, getenv func(string) string) (*Config, error) {
	return loadOr(path, DefaultPath, getenv)
}

func loadOr(path, defaultPath string, getenv func(string) string) (*Config, error) {
	path, data, err := readFile(path, defaultPath, getenv)
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
	c.Temporal.resolve(getenv)
	return c, nil
}

func readFile(path, defaultPath string, getenv func(string) string) (string, []byte, error) {
	if path == "" {
		path = getenv("CRITICIZER_CONFIG")
	}
	optional := path == ""
	if optional {
		path = defaultPath
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return path, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return path, nil, fmt.Errorf("read configuration: %s does not exist: correct --config or CRITICIZER_CONFIG", path)
	case err != nil:
		return path, nil, fmt.Errorf("read configuration: %w", err)
	}
	return path, data, nil
}

func setDefaults(fields []field) (problems []error) {
	for _, f := range fields {
		if text, ok := f.tag.Lookup("default"); ok {
			if err := f.setText(text); err != nil {
				problems = append(problems, fmt.Errorf("%s: default: %w", f.name, err))
			}
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
			if err = f.setText(text); err != nil {
				err = fmt.Errorf("%s (%s): %w", f.variable, f.name, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
