package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlStart begins a file that is YAML rather than one depot path per line.
var yamlStart = regexp.MustCompile(`^(---|- |\[|\{|[a-z0-9_]+:)`)

// LoadPaths reads lists of depot paths from a file of their own. It may hold
// allowed_paths and embargoed_paths as the section p4 does, or that section as in
// a whole configuration, or a YAML list of what is allowed, or that one per line
// with comments on lines of their own. The paths themselves are not checked.
func LoadPaths(file string) (allowed, embargoed []string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read list of paths: %w", err)
	}
	if lines := significantLines(string(data)); len(lines) == 0 || !yamlStart.MatchString(lines[0]) {
		return lines, nil, nil
	}
	var document any
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, nil, fmt.Errorf("read list of paths %s: %w", file, syntaxProblem(err))
	}
	allowed, embargoed, err = pathsIn(document)
	if err != nil {
		return nil, nil, fmt.Errorf("read list of paths %s: %w", file, err)
	}
	return allowed, embargoed, nil
}

// significantLines drops blank lines and comments. A # later in a line belongs
// to a path, which is refused for it.
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

func pathsIn(document any) (allowed, embargoed []string, err error) {
	section, ok := document.(map[string]any)
	if !ok {
		allowed, err = texts("the list", document)
		return allowed, nil, err
	}
	if p4, whole := section["p4"].(map[string]any); whole {
		section = p4
		if err := onlyFields("p4", section); err != nil {
			return nil, nil, err
		}
	} else {
		for name := range section {
			if name != "allowed_paths" && name != "embargoed_paths" {
				return nil, nil, fmt.Errorf("%s: is unknown here: write allowed_paths and embargoed_paths", name)
			}
		}
	}
	if allowed, err = texts("allowed_paths", section["allowed_paths"]); err != nil {
		return nil, nil, err
	}
	embargoed, err = texts("embargoed_paths", section["embargoed_paths"])
	return allowed, embargoed, err
}

// onlyFields refuses what is no field of the section: a misspelt list would be
// taken for none.
func onlyFields(name string, section map[string]any) error {
	for key := range section {
		if !slices.ContainsFunc(fieldsOf(new(Config)), func(f field) bool { return f.name == name+"."+key }) {
			return fmt.Errorf("%s.%s: is unknown: docs/configuration.md has the fields", name, key)
		}
	}
	return nil
}

func texts(name string, value any) ([]string, error) {
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list: write one path below the other, each after a dash", name)
	}
	paths := make([]string, len(items))
	for i, item := range items {
		if paths[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("%s: entry %d is not text: write it in quotes", name, i+1)
		}
	}
	return paths, nil
}
