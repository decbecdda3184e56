package settings

import (
	"context"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/rules"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// DatabaseConfig returns the connection to the database.
func (cfg *Config) DatabaseConfig() postgres.Config {
	database := cfg.Database
	database.ClearText = cfg.AllowsClearText("database")
	return database
}

// AllowList returns the depot paths that may be read.
func (cfg *Config) AllowList() store.AllowList {
	return store.AllowList{Allowed: cfg.P4.Allowed, Embargoed: cfg.P4.Embargoed}
}

// Reviewed returns what reviews say about changelists, as [p4.Config] says.
type Reviewed = func(context.Context, []review.Changelist) (map[review.Changelist]review.Credit, error)

// NewChanges returns the reader of changelists. reviewed may be nil.
func (cfg *Config) NewChanges(lg *slog.Logger, reviewed Reviewed) (*p4.ChangeFetcher, error) {
	changes := cfg.P4
	changes.Selection, changes.Skip, changes.Rules, changes.Context, changes.Reviewed = cfg.Selection, cfg.Skip, cfg.Rules.Depot, pack.Bounds, reviewed
	changes.Owners = cfg.Mail.Owners
	return p4.New(lg, changes)
}

// NewPipeline returns a redaction pipeline with the given key, because not every process
// has the configured one.
func (cfg *Config) NewPipeline(key secret.Value) (*redaction.Pipeline, error) {
	rules, err := redaction.LoadRules(cfg.Redaction.RuleFiles...)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "redaction.rules: %w", err)
	}
	policy := cfg.Redaction
	policy.Key, policy.Rules = key, rules
	return redaction.New(policy)
}

// NewRules returns the configured rules and the shipped ones.
func (cfg *Config) NewRules() (*rules.Set, error) {
	book, err := rules.Load(cfg.LLM.RuleFiles...)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "llm.rules: %w", err)
	}
	return book, nil
}

// A Guard is a [redaction.Pipeline], or wraps one.
type Guard interface {
	Verify(c redaction.Change) error
	VerifyTexts(texts ...redaction.Text) error
	Check(body []byte) error
	Compose(s string) (redaction.Text, error)
	Findings(fs []review.Finding) ([]review.Finding, error)
	String(s string) (redaction.Text, error)
}

// NewReviewer returns the client of the model for reviews.
func (cfg *Config) NewReviewer(lg *slog.Logger, guard Guard) (*llm.Reviewer, error) {
	book, err := cfg.NewRules()
	if err != nil {
		return nil, err
	}
	reviewer := cfg.LLM.Config
	reviewer.Rules = book
	return llm.New(lg, guard, reviewer)
}

// ArtifactConfig configures the artifacts of a namespace.
func (cfg *Config) ArtifactConfig(ns review.Namespace) artifact.Config {
	of := map[review.Namespace]struct {
		keyset secret.Value
		ttl    time.Duration
	}{
		review.NamespaceRaw:      {cfg.Keysets.Raw, cfg.Artifacts.RawTTL},
		review.NamespaceRedacted: {cfg.Keysets.Redacted, cfg.Artifacts.RedactedTTL},
		review.NamespaceReport:   {cfg.Keysets.Report, cfg.Artifacts.ReportTTL},
		review.NamespaceAnswer:   {cfg.Keysets.Answers, cfg.Artifacts.RedactedTTL},
	}[ns]
	return artifact.Config{Namespace: ns, Raw: ns == review.NamespaceRaw, Keyset: of.keyset, KEK: cfg.Artifacts.KEK, TTL: of.ttl}
}
