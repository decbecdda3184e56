package config

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A Role is a kind of process. It decides which sections are checked. The roles of
// workers are the words of their --stages flag.
type Role string

// The roles.
const (
	RoleStarter   Role = "starter"
	RoleWorkflows Role = "workflows"
	RoleFetch     Role = "fetch"
	RoleRedact    Role = "redact"
	RoleLLM       Role = "llm"
	RoleNotify    Role = "notify"
	RoleRetention Role = "retention"
	RoleRewrite   Role = "rewrite"
	RoleBackend   Role = "backend" // enqueues rewrite jobs and reads their results
	RoleOperator  Role = "operator"
	RolePreview   Role = "preview" // reads a change as a review does and stores nothing
	RoleEval      Role = "eval"    // sends cases to the model and stores nothing
)

// needs holds the sections, and single fields of sections, of each role. No role needs
// the credentials of another, so that a compromised stage has only its own (security
// 9.4.3).
var needs = map[Role][]string{
	RoleStarter:   {"temporal", "starter"},
	RoleWorkflows: {"temporal", "database", "oncall"},
	RoleFetch:     {"temporal", "database", "artifacts", "keysets.raw", "p4"},
	RoleRedact:    {"temporal", "database", "artifacts", "keysets.raw", "keysets.redacted", "redaction"},
	RoleLLM:       {"temporal", "database", "artifacts", "keysets.redacted", "keysets.report", "keysets.answers", "redaction", "llm"},
	RoleNotify:    {"temporal", "database", "artifacts", "keysets.report", "mail", "webhook", "swarm", "links", "evidence", "feedback"},
	RoleRetention: {"temporal", "database"},
	RoleRewrite:   {"temporal", "database", "artifacts", "keysets.rewrite", "redaction", "rewrite"},
	RoleBackend:   {"database", "artifacts", "keysets.rewrite"},
	RoleOperator:  {"temporal", "database", "links"},
	RolePreview:   {"p4"},
	RoleEval:      {"llm"},
}

// sections returns the sections that the roles need. Pages by mail need section
// mail.
func (c *Config) sections(roles []Role) []string {
	var sections []string
	for _, role := range roles {
		sections = append(sections, needs[role]...)
	}
	if slices.Contains(sections, "oncall") && c.OnCall.Address != "" {
		sections = append(sections, "mail")
	}
	return sections
}

// isIn reports whether the field is listed, or its section.
func (f field) isIn(sections []string) bool {
	section, _, _ := strings.Cut(f.name, ".")
	return slices.Contains(sections, section) || slices.Contains(sections, f.name)
}

// A Secret is a secret with the environment variable it came from.
type Secret struct {
	Variable string
	secret.Value
}

// Secrets returns the set secrets of the sections that the roles need.
func (c *Config) Secrets(roles ...Role) []Secret {
	sections := c.sections(roles)
	var set []Secret
	for _, f := range fieldsOf(c) {
		if s, ok := f.secret(); ok && s.IsSet() && f.isIn(sections) {
			set = append(set, Secret{f.variable, *s})
		}
	}
	return set
}
