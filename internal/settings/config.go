// Package settings is the configuration of the reviewer: a section for each adapter, the
// roles of its processes, and the adapters that the sections describe. Config is first, then
// roles.go; adapters.go makes the adapters.
package settings

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/notify/oncall"
	"github.com/criticizer/criticizer/notify/swarm"
	"github.com/criticizer/criticizer/notify/webhook"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review/selection"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// Program is where the configuration is.
var Program = config.Program{Prefix: trigger.Program.Prefix, DefaultPath: trigger.Program.DefaultPath, Page: trigger.Program.Page}

// A Config is the whole configuration.
type Config struct {
	trigger.Config `yaml:",inline"`

	// The connection to Postgres, which stores jobs, deliveries and artifacts.
	Database postgres.Config `yaml:"database"`
	// The access to Perforce, and how much of a change is read.
	P4 p4.Config `yaml:"p4"`
	// The changes that are not reviewed (docs/paths.md). Their content is not read, and no
	// one is notified.
	Skip p4.SkipRules `yaml:"skip"`
	// Which of the allowed files are reviewed (docs/paths.md). Patterns are globs, such as
	// //depot/project/legacy/** or *.pb.go. A pattern without // matches the end of a path.
	Selection selection.Config `yaml:"selection"`
	// The rule packs of teams (docs/rules.md). Stage fetch reads them.
	Rules Rules `yaml:"rules"`
	// The model endpoint and the limits of its use.
	LLM LLM `yaml:"llm"`
	// What is masked besides secrets, which always are.
	Redaction redaction.Config `yaml:"redaction"`
	// How long stored data is kept, and its encryption.
	Artifacts Artifacts `yaml:"artifacts"`
	// The Tink keysets that encrypt artifacts, one for each purpose. The command criticizer
	// keyset create makes all.
	Keysets Keysets `yaml:"keysets"`
	// How reports are mailed, and to whom.
	Mail Mail `yaml:"mail"`
	// The channel to which reviews are also posted, in Slack's format (docs/outputs.md).
	Webhook webhook.Config `yaml:"webhook"`
	// The P4 Code Review (Swarm) server to which reviews are posted (docs/outputs.md).
	Swarm swarm.Config `yaml:"swarm"`
	// The links to the code in mails, posts and exported reports (docs/outputs.md).
	Links Links `yaml:"links"`
	// The tokens by which a mail or post of ours is identified (docs/delivery.md).
	Evidence evidence.Config `yaml:"evidence"`
	// Who is paged about a dead letter that needs a person at once (docs/runbook.md). If both
	// fields are set, both are notified; if neither is set, pages wait.
	OnCall oncall.Config `yaml:"oncall"`
	// The rate limits of all workers together, and the process of a worker.
	Worker Worker `yaml:"worker"`
	// The log.
	Log telemetry.Config `yaml:"log"`
}

// Load reads the configuration as [config.Program.Read] does.
func Load(path string, getenv func(string) string) (*Config, error) {
	c := new(Config)
	if err := Program.Read(c, path, getenv); err != nil {
		return nil, err
	}
	c.Temporal.Resolve(getenv)
	return c, nil
}

// Check returns an error that lists everything that keeps a process with the roles from
// working, each as "field: problem: hint"; a secret is named by its variable. Sections that
// none of the roles needs are not checked.
func (cfg *Config) Check(roles ...Role) error {
	p := config.Problems{AllowClearText: cfg.AllowClearText}
	for _, role := range roles {
		p.Add(needs[role] == nil, "role "+string(role), "is unknown", fmt.Sprintf("use one of %v", slices.Sorted(maps.Keys(needs))))
	}
	everywhere := []string{"server_id", "allow_cleartext", "shelf", "worker", "log"}
	Program.Check(cfg, &p, slices.Concat(everywhere, cfg.sections(roles))...)
	if err := p.Err(); err != nil {
		return fmt.Errorf("check configuration:\n%w", err)
	}
	return nil
}

// CheckSections is [Config.Check] for single sections.
func (cfg *Config) CheckSections(sections ...string) error {
	p := config.Problems{AllowClearText: cfg.AllowClearText}
	Program.Check(cfg, &p, sections...)
	return p.Err()
}

// CheckClearText returns an error if a process with the roles would send something in clear.
// [Config.Check] includes it.
func (cfg *Config) CheckClearText(roles ...Role) error {
	p := config.Problems{AllowClearText: cfg.AllowClearText}
	if sections := cfg.sections(roles); len(sections) > 0 {
		Program.CheckClearText(cfg, &p, sections...)
	}
	return p.Err()
}

// AllowsClearText reports whether the section's connections may be without TLS.
func (cfg *Config) AllowsClearText(section string) bool {
	return slices.Contains(cfg.AllowClearText, section)
}

// Secrets returns the set secrets of the sections that the roles need.
func (cfg *Config) Secrets(roles ...Role) []config.Secret {
	if len(roles) == 0 {
		return nil
	}
	return Program.Secrets(cfg, cfg.sections(roles)...)
}

// Artifacts configures how long stored data is kept, and its encryption.
type Artifacts struct {
	// Retention of raw diffs; at most 168h.
	RawTTL time.Duration `yaml:"raw_ttl" default:"168h" check:"positive" max:"168h"`
	// Retention of redacted diffs and model answers; at most 720h.
	RedactedTTL time.Duration `yaml:"redacted_ttl" default:"720h" check:"positive" max:"720h"`
	// Retention of reports; at most 720h.
	ReportTTL time.Duration `yaml:"report_ttl" default:"720h" check:"positive" max:"720h"`
	// How long the deliveries, dead letters, findings without opinion and costs of a review
	// that succeeded are kept; less counts as 720h. Stage retention reads it. 0: forever.
	JobsTTL time.Duration `yaml:"jobs_ttl" default:"0s" check:"not-negative"`
	KEK     artifact.KEK  `yaml:",inline"`
}

// KeysetPurposes lists the fields of [Keysets]. Each is in the variable
// CRITICIZER_<purpose>_KEYSET.
var KeysetPurposes = []string{"raw", "redacted", "report", "answers"}

// Keysets configures the Tink keysets that encrypt artifacts, one for each purpose, so
// that a stage holds only those that it needs. A keyset with two keys rotates them. The
// command criticizer keyset create makes all.
type Keysets struct {
	// Encrypts raw changes: stages fetch and redact.
	Raw secret.Value `yaml:"raw" env:"CRITICIZER_RAW_KEYSET" required:"a Tink keyset, made by: criticizer keyset create DIR"`
	// Encrypts redacted changes: stages redact and llm.
	Redacted secret.Value `yaml:"redacted" env:"CRITICIZER_REDACTED_KEYSET" required:"a Tink keyset, made by: criticizer keyset create DIR"`
	// Encrypts reports: stages llm and notify.
	Report secret.Value `yaml:"report" env:"CRITICIZER_REPORT_KEYSET" required:"a Tink keyset, made by: criticizer keyset create DIR"`
	// Encrypts answers of the model: stage llm.
	Answers secret.Value `yaml:"answers" env:"CRITICIZER_ANSWERS_KEYSET" required:"a Tink keyset, made by: criticizer keyset create DIR"`
}

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

// WorkerRoles lists the roles of workers.
var WorkerRoles = []Role{RoleWorkflows, RoleFetch, RoleRedact, RoleLLM, RoleNotify, RoleRetention}

// Database is the database role of a role of workers.
func (r Role) Database() store.Role {
	if r == RoleWorkflows {
		return store.RoleBookkeeping
	}
	return store.Role("criticizer_" + r)
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
