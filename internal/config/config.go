// Package config holds the configuration: a YAML file and environment variables
// that override it. Secrets come from the environment only (security 9.3.1).
//
// The struct Config and its sections are the only description of the fields. The
// tags give names, defaults and checks; the comments give the text of
// docs/configuration.md, which a test generates:
//
//	yaml      name in the file
//	env       environment variable; default: CRITICIZER_SECTION_FIELD
//	default   default value, as written in the file
//	required  the field must be set; the text completes the hint "set ..."
//	check     positive, not-negative, port, http-url or address
//	max       largest duration
//	oneof     allowed values
//
// Load reads the configuration. Check reports what a role lacks.
package config

import (
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// DefaultPath is the configuration file if neither --config nor CRITICIZER_CONFIG
// names one. Only this file may be missing.
const DefaultPath = "/etc/criticizer/criticizer.yaml"

// A Config is the whole configuration.
type Config struct {
	// Name of the Perforce server in idempotency keys. Do not change it: reviews
	// under another name in the same database are refused.
	ServerID string `yaml:"server_id" default:"p4" required:"the name of the Perforce server"`
	// Sections whose connections to other hosts may be without TLS: p4, database,
	// temporal, llm, rewrite or mail. Passwords and keys for HTTP and mail servers
	// are refused without TLS in any case.
	AllowClearText []string `yaml:"allow_cleartext"`

	Temporal  Temporal  `yaml:"temporal"`
	Starter   Starter   `yaml:"starter"`
	Database  Database  `yaml:"database"`
	P4        P4        `yaml:"p4"`
	Skip      Skip      `yaml:"skip"`
	Shelf     Shelf     `yaml:"shelf"`
	Selection Selection `yaml:"selection"`
	Rules     Rules     `yaml:"rules"`
	Context   Context   `yaml:"context"`
	LLM       LLM       `yaml:"llm"`
	Redaction Redaction `yaml:"redaction"`
	Artifacts Artifacts `yaml:"artifacts"`
	Keysets   Keysets   `yaml:"keysets"`
	Mail      Mail      `yaml:"mail"`
	Webhook   Webhook   `yaml:"webhook"`
	Swarm     Swarm     `yaml:"swarm"`
	Links     Links     `yaml:"links"`
	Evidence  Evidence  `yaml:"evidence"`
	Feedback  Feedback  `yaml:"feedback"`
	OnCall    OnCall    `yaml:"oncall"`
	Rewrite   Rewrite   `yaml:"rewrite"`
	Worker    Worker    `yaml:"worker"`
	Breaker   Breaker   `yaml:"breaker"`
	Log       Log       `yaml:"log"`
}

// Starter configures the spool of a trigger that cannot reach Temporal
// (docs/trigger.md).
type Starter struct {
	// Directory of the spooled reviews. Only the account of the trigger needs
	// access to it.
	SpoolDir string `yaml:"spool_dir" default:"/var/lib/criticizer/spool" required:"a directory that only the account of the trigger may enter"`
	// Largest number of spooled reviews.
	SpoolLimit int `yaml:"spool_limit" default:"10000" check:"positive"`
}

// Database configures the connection to Postgres, which stores jobs, deliveries and
// artifacts.
type Database struct {
	// Postgres URL with the database role of this process; each stage has its own
	// role. The whole URL is a secret because it contains the password.
	URL secret.Value `yaml:"url" required:"a Postgres URL"`
}

// Artifacts configures how long stored data is kept, and its encryption.
type Artifacts struct {
	// Retention of raw diffs; at most 168h.
	RawTTL time.Duration `yaml:"raw_ttl" default:"168h" check:"positive" max:"168h"`
	// Retention of redacted diffs and model answers; at most 720h.
	RedactedTTL time.Duration `yaml:"redacted_ttl" default:"720h" check:"positive" max:"720h"`
	// Retention of reports; at most 720h.
	ReportTTL time.Duration `yaml:"report_ttl" default:"720h" check:"positive" max:"720h"`
	// How long the deliveries, dead letters, findings without opinion and costs of a
	// review that succeeded are kept; less counts as 720h. Its job stays, so that the
	// version is not reviewed again. Stage retention reads it. 0: forever.
	JobsTTL time.Duration `yaml:"jobs_ttl" default:"0s" check:"not-negative"`
	// Key in a key management service that encrypts the keysets, such as
	// hcvault://vault.example.com:8200/transit/keys/criticizer. Unset if the keysets are
	// in clear text.
	KEKURI string `yaml:"kek_uri"`
	// Token for the key management service.
	KEKToken secret.Value `yaml:"kek_token" env:"CRITICIZER_KEK_TOKEN"`
}

// KeysetPurposes lists the fields of [Keysets]. Each is in the variable
// CRITICIZER_<purpose>_KEYSET.
var KeysetPurposes = []string{"raw", "redacted", "report", "answers", "rewrite"}

// Keysets configures the Tink keysets that encrypt artifacts, one for each purpose, so
// that a stage holds only those that it needs. A keyset with two keys rotates them. The
// command criticizer keyset create makes all.
type Keysets struct {
	// Encrypts raw changes: stages fetch and redact.
	Raw secret.Value `yaml:"raw" env:"CRITICIZER_RAW_KEYSET" required:"a Tink keyset"`
	// Encrypts redacted changes: stages redact and llm.
	Redacted secret.Value `yaml:"redacted" env:"CRITICIZER_REDACTED_KEYSET" required:"a Tink keyset"`
	// Encrypts reports: stages llm and notify.
	Report secret.Value `yaml:"report" env:"CRITICIZER_REPORT_KEYSET" required:"a Tink keyset"`
	// Encrypts answers of the model: stage llm.
	Answers secret.Value `yaml:"answers" env:"CRITICIZER_ANSWERS_KEYSET" required:"a Tink keyset"`
	// Encrypts texts of the rewrite queue: stage rewrite and backends.
	Rewrite secret.Value `yaml:"rewrite" env:"CRITICIZER_REWRITE_KEYSET" required:"a Tink keyset"`
}

// Log configures the log.
type Log struct {
	// Lowest level that is logged: debug, info, warn or error.
	Level slog.Level `yaml:"level" default:"info"`
	// Format: text, json, or auto, which is text on a terminal and json elsewhere.
	Format string `yaml:"format" default:"auto" oneof:"auto text json"`
}
