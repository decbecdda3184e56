package settings

import (
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/review"
)

// LLM is the model endpoint and the limits of its use.
type LLM struct {
	llm.Config `yaml:",inline"`
	// Whether the endpoint is a simulation: all outputs say that no model reads the changes,
	// and no test run passes.
	StandIn bool `yaml:"stand_in" default:"false"`
	// Token budget of a day (UTC) for all workers. 0: no limit.
	MaxTokensPerDay int           `yaml:"max_tokens_per_day" default:"30000000" check:"not-negative"`
	Prices          review.Prices `yaml:",inline"`
}

// Rules configures the rule packs of teams (docs/rules.md). Stage fetch reads them.
type Rules struct {
	// Depot paths of up to 20 files, which p4.allowed_paths has to cover. The revision
	// before the change is used. Their packs add to those of llm.rules and the shipped
	// ones.
	Depot []string `yaml:"depot"`
}
