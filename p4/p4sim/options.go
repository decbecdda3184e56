package main

import (
	"slices"
	"strconv"
	"strings"
)

// flags holds the values of the options that were given, by name; options
// without a value hold empty strings.
type flags map[string][]string

func (f flags) has(name string) bool { return len(f[name]) > 0 }

// value is the last one given.
func (f flags) value(name string) string {
	if !f.has(name) {
		return ""
	}
	return f[name][len(f[name])-1]
}

// number is 0 for an option that was not given.
func (f flags) number(name string) int {
	n, _ := strconv.Atoi(f.value(name))
	return n
}

// parseFlags reads options up to the first argument. The spec lists them,
// separated by spaces: "a" takes no value, "c:" a value, "m#" a number,
// "--size#" is long. Options without value may share one dash. There is no
// end-of-options mark. The first problem ends the parsing.
func parseFlags(spec string, args []string) (flags, []string, *utterance) {
	known := strings.Fields(spec)
	set := flags{}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		var problem *utterance
		if args, problem = set.take(known, args); problem != nil {
			return set, args, problem
		}
	}
	return set, args, nil
}

// take reads the options of the first argument and what value the next holds.
func (f flags) take(known, args []string) ([]string, *utterance) {
	word, rest := args[0], args[1:]
	if strings.HasPrefix(word, "--") {
		name, value, hasValue := strings.Cut(word, "=")
		return f.set(known, name, value, hasValue, rest)
	}
	for i := 1; i < len(word); i++ {
		name := word[i : i+1]
		if slices.Contains(known, name) {
			f[name] = append(f[name], "")
			continue
		}
		return f.set(known, name, word[i+1:], i+1 < len(word), rest)
	}
	return rest, nil
}

func (f flags) set(known []string, name, value string, attached bool, rest []string) ([]string, *utterance) {
	option := strings.TrimPrefix(name, "-")
	numeric := slices.Contains(known, name+"#")
	switch {
	case slices.Contains(known, name):
	case !numeric && !slices.Contains(known, name+":"):
		return rest, problem(invalidOption, option)
	case !attached && len(rest) == 0:
		return rest, problem(optionNeedsArg, option)
	case !attached:
		value, rest = rest[0], rest[1:]
	}
	if n, err := strconv.Atoi(value); numeric && (err != nil || n < 0) {
		return rest, problem(optionNeedsNumber, option)
	}
	f[name] = append(f[name], value)
	return rest, nil
}

func problem(m *message, args ...string) *utterance {
	u := m.byClient(args...)
	return &u
}
