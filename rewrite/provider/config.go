package provider

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/rewrite"
)

const (
	defaultTimeout         = 2 * time.Minute
	defaultMaxAnswerTokens = 4_000
)

// Config says who may be asked to rewrite.
type Config struct {
	// Providers are those that a routing decision may name. There is no default.
	Providers map[string]Provider
	// Timeout bounds one call. Default 2 minutes.
	Timeout time.Duration
	// MaxAnswerTokens bounds one answer, the thinking of a reasoning model
	// included. Default 4,000.
	MaxAnswerTokens int
}

// A Provider is one model endpoint. A job whose decision names another URL than
// its provider has is refused, so that no key goes where a row says.
type Provider struct {
	// BaseURL is where the paths of its API begin. Required.
	BaseURL string
	// APIKey is sent with every request. Unset for servers that want none.
	APIKey secret.Value
	// APIKeyOld is tried where APIKey is not accepted. Default none.
	APIKeyOld secret.Value
	// Adapters are the protocols it speaks. Default all this build has.
	Adapters []rewrite.AdapterKind
	// NoBatches is set for servers that have no batch API.
	NoBatches bool
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxAnswerTokens = cmp.Or(c.MaxAnswerTokens, defaultMaxAnswerTokens)
	return c
}

func (c Config) validate() error {
	if c.Timeout < 0 || c.MaxAnswerTokens < 0 {
		return failure.Errorf(failure.ConfigInvalid, "rewriter: time limit %s and answer limit %d may not be negative", c.Timeout, c.MaxAnswerTokens)
	}
	for name, p := range c.Providers {
		for _, kind := range p.Adapters {
			if _, known := adapters[kind]; !known {
				return failure.Errorf(failure.ConfigInvalid, "rewrite provider %s: there is no adapter %s", name, kind)
			}
		}
	}
	return nil
}

// speaks reports whether the provider may be spoken to by an adapter of kind.
func (p Provider) speaks(kind rewrite.AdapterKind) bool {
	return len(p.Adapters) == 0 || slices.Contains(p.Adapters, kind)
}

// has reports whether url, which a decision names, is the provider's; no URL is.
func (p Provider) has(url string) bool {
	return url == "" || strings.TrimRight(url, "/") == strings.TrimRight(p.BaseURL, "/")
}
