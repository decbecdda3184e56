package settings

import "slices"

// A Role is a kind of process. It decides which sections are checked. The roles of
// workers are the words of their --roles flag.
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
	RoleOperator  Role = "operator"
	RolePreview   Role = "preview" // reads a change as a review does and stores nothing
	RoleEval      Role = "eval"    // sends cases to the model and stores nothing
)

// needs holds the sections, and single fields of sections, of each role. No role needs
// the credentials of another, so that a compromised stage has only its own (security
// 9.4.3).
var needs = map[Role][]string{
	RoleStarter:   {"temporal", "starter"},
	RoleWorkflows: {"temporal", "database", "oncall", "links"},
	RoleFetch:     {"temporal", "database", "artifacts", "keysets.raw", "p4"},
	RoleRedact:    {"temporal", "database", "artifacts", "keysets.raw", "keysets.redacted", "redaction"},
	RoleLLM:       {"temporal", "database", "artifacts", "keysets.redacted", "keysets.report", "keysets.answers", "redaction", "llm"},
	RoleNotify:    {"temporal", "database", "artifacts", "keysets.report", "mail", "webhook", "swarm", "links", "evidence"},
	RoleRetention: {"temporal", "database"},
	RoleOperator:  {"temporal", "database", "links"},
	RolePreview:   {"p4"},
	RoleEval:      {"llm"},
}

// sections returns the sections that the roles need. Pages by mail need section
// mail.
func (cfg *Config) sections(roles []Role) []string {
	var sections []string
	for _, role := range roles {
		sections = append(sections, needs[role]...)
	}
	if slices.Contains(sections, "oncall") && cfg.OnCall.Address != "" {
		sections = append(sections, "mail")
	}
	return sections
}
