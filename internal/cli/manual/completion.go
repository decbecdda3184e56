package manual

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

//go:embed completion
var scripts embed.FS

var shells = template.Must(template.New("").Funcs(template.FuncMap{
	"quote": func(s string) string { return "'" + strings.ReplaceAll(s, "'", "") + "'" },
	"join":  func(words []string) string { return strings.Join(words, " ") },
}).ParseFS(scripts, "completion/*"))

// Completion returns the script that completes the command line of a program
// in bash, zsh or fish.
func Completion(shell, program string, pages []Page) (string, error) {
	script := shells.Lookup(shell)
	if script == nil {
		return "", fmt.Errorf("complete for %q: want bash, zsh or fish", shell)
	}
	commands := Commands(pages)
	var out strings.Builder
	err := script.Execute(&out, struct {
		Program, Function string
		Routes            []string // of all commands but the program itself
		Nodes             []node
	}{program, "_" + strings.ReplaceAll(program, "-", "_"), routes(commands), nodes(commands)})
	return out.String(), err
}

// A node is a command with what may come next.
type node struct {
	Command
	Next map[string]string // commands and choices, with their summary
}

// Words are all that may come next.
func (n node) Words() []string {
	words := slices.Sorted(maps.Keys(n.Next))
	for _, f := range n.Flags {
		words = append(words, "-"+f.Name)
	}
	return words
}

func nodes(commands []Command) []node {
	all := make([]node, len(commands))
	for i, c := range commands {
		all[i] = node{c, map[string]string{}}
		for _, choice := range c.Choices {
			all[i].Next[choice] = ""
		}
		for _, other := range commands {
			if n := len(c.Route); len(other.Route) == n+1 && slices.Equal(other.Route[:n], c.Route) {
				all[i].Next[other.Route[n]] = other.Summary
			}
		}
	}
	return all
}

func routes(commands []Command) []string {
	var all []string
	for _, c := range commands {
		if len(c.Route) > 0 {
			all = append(all, strings.Join(c.Route, " "))
		}
	}
	return all
}
