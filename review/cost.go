package review

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Cost is the cost of a review at the configured prices.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Prices are the prices of a million tokens. Zero is unknown.
type Prices struct {
	Prompt, Cached, Completion float64
	Currency                   string
}

// ParsePrices returns the prices that a text such as "2.00 0.50 8.00 USD" gives: of prompt tokens,
// of those from the provider's cache, of answer tokens, and the currency. No text has none.
func ParsePrices(text string) (p Prices, err error) {
	if text == "" {
		return Prices{}, nil
	}
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return Prices{}, fmt.Errorf("%q is not three prices and a currency", text)
	}
	for i, price := range []*float64{&p.Prompt, &p.Cached, &p.Completion} {
		*price, err = strconv.ParseFloat(fields[i], 64)
		if err != nil || *price < 0 || math.IsNaN(*price) || math.IsInf(*price, 0) {
			return Prices{}, fmt.Errorf("%q is not a price", fields[i])
		}
	}
	if p.Currency = fields[3]; !currency.MatchString(p.Currency) {
		return Prices{}, fmt.Errorf("%q is not a currency", p.Currency)
	}
	return p, nil
}

// currency matches the codes of ISO 4217.
var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// Of returns the cost of u, or nil if it is not exact: a price is unknown, or the
// endpoint did not report the usage.
func (p Prices) Of(u Usage) *Cost {
	fresh := u.PromptTokens - u.CachedTokens
	if p.Prompt == 0 || p.Completion == 0 || u.CachedTokens > 0 && p.Cached == 0 || u.Estimated || fresh < 0 {
		return nil
	}
	perMillion := float64(fresh)*p.Prompt + float64(u.CachedTokens)*p.Cached + float64(u.CompletionTokens)*p.Completion
	return &Cost{Amount: perMillion / 1e6, Currency: p.Currency}
}
