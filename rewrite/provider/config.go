package provider

import (
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/rewrite"
)

// Config configures the providers.
type Config struct {
	// Providers are the providers of routing decisions, by name. There is no default.
	Providers map[string]Provider
	// Installation is the name of this installation in the metadata of its batches.
	Installation string
	// Timeout bounds one call.
	Timeout time.Duration
	// MaxAnswerTokens bounds one answer, including the reasoning tokens.
	MaxAnswerTokens int
}

// A Provider is one model endpoint. A job whose decision has another URL is refused, so
// that a row of the database cannot redirect the key.
type Provider struct {
	// BaseURL is the URL before the paths of its API. Required.
	BaseURL string
	// APIKey is sent with every request. Unset for servers without keys.
	APIKey secret.Value
	// APIKeyOld is used if APIKey is rejected. Default none.
	APIKeyOld secret.Value
	// Adapters are the wire formats it supports. Default all.
	Adapters []rewrite.AdapterKind
	// NoBatches is set for servers that have no batch API.
	NoBatches bool
}

func (p Provider) supports(kind rewrite.AdapterKind) bool {
	return len(p.Adapters) == 0 || slices.Contains(p.Adapters, kind)
}

// has reports whether url, of a routing decision, is empty or the provider's.
func (p Provider) has(url string) bool {
	return url == "" || strings.TrimRight(url, "/") == strings.TrimRight(p.BaseURL, "/")
}
