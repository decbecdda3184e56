package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
)

// yamlStart matches the first line of a YAML file, sectionStart that of a section.
var (
	yamlStart    = regexp.MustCompile(`^(---|[a-z0-9_]+:)`)
	sectionStart = regexp.MustCompile(`^[a-z]+_paths:`)
)

// LoadPaths reads the allowed and embargoed paths of a configuration file, of the
// content of its section p4, or of a plain list of allowed paths: one per line, with
// comments on their own lines. It does not check the paths.
func LoadPaths(file string) (allowed, embargoed []string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read list of paths: %w", err)
	}
	lines := significantLines(string(data))
	if len(lines) == 0 || !yamlStart.MatchString(lines[0]) {
		return lines, nil, nil
	}
	c := new(Config)
	fields := fieldsOf(c)
	if sectionStart.MatchString(lines[0]) {
		fields = leaves(reflect.ValueOf(&c.P4).Elem(), "")
	}
	if problems := setFromYAML(fields, data); len(problems) > 0 {
		return nil, nil, fmt.Errorf("read list of paths %s:\n%w", file, errors.Join(problems...))
	}
	return c.P4.AllowedPaths, c.P4.EmbargoedPaths, nil
}

// significantLines drops empty lines and comments. A # later in a line belongs to a
// path; the check of the paths refuses it.
func significantLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
