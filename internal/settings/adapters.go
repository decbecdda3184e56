package settings

import (
	"context"
	"log/slog"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/pack"
	"github.com/criticizer/criticizer/review/rules"
	"github.com/criticizer/criticizer/review/selection"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// DatabaseConfig returns the connection to the database.
func (cfg *Config) DatabaseConfig() store.Config {
	return store.Config{URL: cfg.Database.URL, ClearText: cfg.AllowsClearText("database")}
}

// AllowList returns the depot paths that may be read.
func (cfg *Config) AllowList() store.AllowList {
	return store.AllowList{Allowed: cfg.P4.AllowedPaths, Embargoed: cfg.P4.EmbargoedPaths}
}

// SelectionConfig returns the selection of files.
func (cfg *Config) SelectionConfig() selection.Config {
	return selection.Config{Exclude: cfg.Selection.Exclude, Include: cfg.Selection.Include}
}

// Reviewed returns which changelists were reviewed, as [p4.Config] says.
type Reviewed = func(context.Context, []review.Changelist) (map[review.Changelist]bool, error)

// NewChanges returns the reader of changelists. reviewed may be nil.
func (cfg *Config) NewChanges(lg *slog.Logger, reviewed Reviewed) (*p4.ChangeFetcher, error) {
	return p4.New(lg, p4.Config{
		Command: cfg.P4.Command,
		Port:    cfg.P4.Port,
		User:    cfg.P4.User,
		Charset: cfg.P4.Charset, CharsetFallback: cfg.P4.CharsetFallback,
		Ticket:    cfg.P4.Ticket,
		Allowed:   cfg.P4.AllowedPaths,
		Embargoed: cfg.P4.EmbargoedPaths,
		Selection: cfg.SelectionConfig(),
		Skip: p4.SkipRules{
			Users: cfg.Skip.Users, Clients: cfg.Skip.Clients, Paths: cfg.Skip.Paths, Tags: cfg.Skip.DescriptionTags,
		},
		Reviewed:       reviewed,
		ReviewedUpTo:   review.Changelist(cfg.P4.ReviewedUpTo),
		MixedChanges:   p4.MixedChanges(cfg.P4.MixedChanges),
		StateDir:       cfg.P4.StateDir,
		Timeout:        cfg.P4.Timeout,
		MaxFiles:       cfg.P4.MaxFiles,
		MaxFileBytes:   int64(cfg.P4.MaxFileBytes),
		MaxChangeBytes: int64(cfg.P4.MaxChangeBytes),
		ContextLines:   cfg.P4.ContextLines,
		Rules:          cfg.Rules.Depot,
		Context: pack.Limits{
			Lines: cfg.Context.MaxLines, Files: cfg.Context.MaxFiles, Bytes: int64(cfg.Context.MaxBytes), Tokens: cfg.Context.MaxTokens,
		},
	})
}

// NewPipeline returns a redaction pipeline with the given key, because not every process
// has the configured one.
func (cfg *Config) NewPipeline(key secret.Value) (*redaction.Pipeline, error) {
	rules, err := redaction.LoadRules(cfg.Redaction.Rules...)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "redaction.rules: %w", err)
	}
	return redaction.New(redaction.Config{
		Key:          key,
		Rules:        rules,
		Emails:       cfg.Redaction.Emails,
		HostSuffixes: cfg.Redaction.HostSuffixes,
		InternalIPs:  cfg.Redaction.InternalIPs,
	})
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
	Check(body []byte) error
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
	reviewer.Rules, reviewer.CodeKey = book, cfg.Redaction.Key
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
		review.NamespaceRewrite:  {cfg.Keysets.Rewrite, artifact.RewriteTTL},
	}[ns]
	return artifact.Config{Namespace: ns, Keyset: of.keyset, KEK: cfg.KEK(), TTL: of.ttl}
}

// KEK is the key that encrypts the keysets.
func (cfg *Config) KEK() artifact.KEK {
	return artifact.KEK{URI: cfg.Artifacts.KEKURI, Token: cfg.Artifacts.KEKToken}
}
