package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

// program is where the configuration is. rewrite/docs/configuration.md is generated from
// the structs below.
var program = config.Program{
	Prefix: "COMPLAINT_REWRITE", DefaultPath: "/etc/complaint-rewrite/complaint-rewrite.yaml", Page: "rewrite/docs/configuration.md",
}

// settings are the whole configuration.
type settings struct {
	// Sections whose connections to other hosts may be without TLS: database, temporal,
	// google, openai or other. Keys are refused without TLS in any case.
	AllowClearText []string `yaml:"allow_cleartext" oneof:"database temporal openai google other"`
	// Timeout of one call of a provider.
	Timeout time.Duration `yaml:"timeout" default:"120s" check:"positive"`
	// Largest answer, including the thinking of a reasoning model.
	MaxAnswerTokens int `yaml:"max_answer_tokens" default:"4000" check:"positive"`
	// Address of the worker that serves /metrics, /healthz and /readyz, such as
	// 127.0.0.1:9465. Each worker on a host needs its own. Empty: none.
	Listen string `yaml:"listen"`
	// Tink keyset that encrypts texts: workers and backends. The command keyset makes one.
	Keyset secret.Value `yaml:"keyset" required:"a Tink keyset"`
	// Key in a key management service that encrypts the keyset, such as
	// hcvault://vault.example.com:8200/transit/keys/rewrite.
	KEKURI string `yaml:"kek_uri"`
	// Token for the key management service.
	KEKToken secret.Value `yaml:"kek_token"`

	// The connection to Postgres, which has the queue and its texts.
	Database postgres.Config `yaml:"database"`
	// The connection to Temporal, which starts the runs. TLS comes from a profile of the
	// temporal command (docs/temporal.md).
	Temporal temporal.Config `yaml:"temporal"`
	// What is masked besides secrets, which always are.
	Redaction redaction.Config `yaml:"redaction"`
	// The log.
	Log telemetry.Config `yaml:"log"`

	// The limits of one run of a worker, and the intervals between runs. For a field that is
	// 0 or empty the profile decides.
	Run rewrite.RunConfig `yaml:"run"`
	// The limits of batches. The default is that of OpenAI.
	Batch batchSettings `yaml:"batch"`
	// The routing of jobs that name no route.
	Route routeSettings `yaml:"route"`
	// Provider openai, with the adapters openai_responses and openai_chat.
	OpenAI providerSettings `yaml:"openai"`
	// Provider google, with the adapter gemini_generate.
	Google providerSettings `yaml:"google"`
	// Provider other, a server with the protocol of OpenAI.
	Other providerSettings `yaml:"other"`
}

type batchSettings struct {
	// Largest number of tokens of one model in batches at the provider; the limit of
	// the account.
	MaxEnqueuedTokens int `yaml:"max_enqueued_tokens" default:"2000000" check:"positive"`
}

type routeSettings struct {
	// openai, google or other.
	Provider string `yaml:"provider" default:"openai" oneof:"openai google other"`
	// Model that rewrites.
	Model string `yaml:"model" required:"a model of the provider"`
	// batch: many jobs in one request, at half the price, within a day. async: one
	// call per job.
	ExecutionMode string `yaml:"execution_mode" default:"batch" oneof:"batch async"`
}

type providerSettings struct {
	// Base URL of the API, before its paths. Empty: that of OpenAI or Google; other is not used.
	BaseURL string `yaml:"base_url" check:"http-url"`
	// API key of the provider, and in a second line the old one during a rotation. Unset for a
	// server without authentication.
	APIKey secret.Value `yaml:"api_key"`
}

// Check implements the checks of package config.
func (r providerSettings) Check(p *config.Problems) { p.Keys("api_key", r.APIKey) }

// Connections returns the connection to the provider.
func (r providerSettings) Connections() []config.Connection {
	return []config.Connection{config.OverHTTP("base_url", r.BaseURL, "api_key", r.APIKey)}
}

// readSettings reads the configuration and checks the sections and fields that a party needs:
// all of them if none is listed.
func readSettings(path string, getenv func(string) string, needs ...string) (*settings, error) {
	c := new(settings)
	if err := program.Read(c, path, getenv); err != nil {
		return nil, err
	}
	c.Temporal.Resolve(getenv)
	return c, c.check(needs)
}

func (c *settings) check(needs []string) error {
	p := config.Problems{AllowClearText: c.AllowClearText}
	program.Check(c, &p, needs...)
	if err := p.Err(); err != nil {
		return fmt.Errorf("check configuration:\n%w", err)
	}
	return nil
}

func (c *settings) allowsClearText(section string) bool {
	return slices.Contains(c.AllowClearText, section)
}

// providers returns the configured providers by name.
func (c *settings) providers() map[string]provider.Provider {
	configured := map[string]provider.Provider{
		"openai": {BaseURL: cmp.Or(c.OpenAI.BaseURL, "https://api.openai.com/v1"), APIKey: c.OpenAI.APIKey},
		"google": {BaseURL: cmp.Or(c.Google.BaseURL, "https://generativelanguage.googleapis.com/v1beta"), APIKey: c.Google.APIKey},
	}
	if c.Other.BaseURL != "" {
		configured["other"] = provider.Provider{BaseURL: c.Other.BaseURL, APIKey: c.Other.APIKey}
	}
	return configured
}

// runs returns the limits of runs. The error has class CONFIG_INVALID.
func (c *settings) runs() (rewrite.RunConfig, error) {
	run := c.Run.Complete()
	if err := run.Validate(c.Timeout); err != nil {
		return run, failure.Errorf(failure.ConfigInvalid, "run: %w", err)
	}
	return run, nil
}

// policyVersion is the rewriting policy of the prompts, for the record.
const policyVersion = "v1"

// route returns the decision for jobs that name no route. The error has class CONFIG_INVALID.
func (c *settings) route() (rewrite.RoutingDecision, error) {
	kinds := map[string]rewrite.AdapterKind{"openai": rewrite.OpenAIResponses, "google": rewrite.GeminiGenerate, "other": rewrite.OpenAIChat}
	decision := rewrite.RoutingDecision{
		Provider: c.Route.Provider, AdapterKind: kinds[c.Route.Provider], Model: c.Route.Model,
		PromptVersion: provider.NewestPrompts, PolicyVersion: policyVersion, Mode: rewrite.ExecutionMode(c.Route.ExecutionMode),
	}
	if err := decision.Validate(); err != nil {
		return decision, failure.Errorf(failure.ConfigInvalid, "route: %w", err)
	}
	return decision, nil
}
