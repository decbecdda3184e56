package config

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A Secret is one that is set, with the variable it came from.
type Secret struct {
	Variable string
	secret.Value
}

// Secrets returns the secrets that are set in what the roles need, in the order
// of the sections.
func (c *Config) Secrets(roles ...Role) []Secret {
	var sections []string
	for _, role := range roles {
		sections = append(sections, c.sections(role)...)
	}
	var set []Secret
	for _, f := range fieldsOf(c) {
		section, _, _ := strings.Cut(f.name, ".")
		if s, ok := f.secret(); ok && s.IsSet() && slices.Contains(sections, section) {
			set = append(set, Secret{f.variable, *s})
		}
	}
	return set
}
