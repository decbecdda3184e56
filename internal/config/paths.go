package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// yamlStart matches the first line of a configuration file.
var yamlStart = regexp.MustCompile(`^(---|[a-z0-9_]+:)`)

// LoadPaths reads the allowed and embargoed paths of a configuration file, or a
// plain list of allowed paths: one per line, with comments on their own lines. It
// does not check the paths.
func LoadPaths(file string) (allowed, embargoed []string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read list of paths: %w", err)
	}
	if lines := significantLines(string(data)); len(lines) == 0 || !yamlStart.MatchString(lines[0]) {
		return lines, nil, nil
	}
	c := new(Config)
	if problems := setFromYAML(fieldsOf(c), data); len(problems) > 0 {
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
