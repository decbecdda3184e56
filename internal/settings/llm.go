package settings

import (
	"fmt"

	"github.com/criticizer/criticizer/internal/config"
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
	MaxTokensPerDay int `yaml:"max_tokens_per_day" default:"30000000" check:"not-negative"`
	// Prices of a million tokens, such as '2.00 0.50 8.00 USD': of the prompt, of the prompt from
	// the provider's cache, of the answer, and their currency. The report shows the cost of a
	// review if no price that it needs is 0. Empty: unknown.
	Prices string `yaml:"prices"`
}

// Check implements the checks of package config.
func (l LLM) Check(p *config.Problems) {
	l.Config.Check(p)
	_, err := review.ParsePrices(l.Prices)
	p.Add(err != nil, "prices", fmt.Sprint(err), "write the prices of a million prompt, cached and answer tokens, and their currency, such as 2.00 0.50 8.00 USD")
}

// TokenPrices returns the prices, which were checked.
func (l LLM) TokenPrices() review.Prices {
	prices, _ := review.ParsePrices(l.Prices)
	return prices
}

// Rules configures the rule packs of teams (docs/rules.md). Stage fetch reads them.
type Rules struct {
	// Depot paths of up to 20 files, which p4.allowed_paths has to cover. The revision
	// before the change is used. Their packs add to those of llm.rules and the shipped
	// ones.
	Depot []string `yaml:"depot"`
}
