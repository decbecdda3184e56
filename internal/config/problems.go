package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// problems collects what is wrong, each as "field: what is wrong: what to do".
type problems []error

func (p *problems) add(wrong bool, field, what, todo string) {
	if wrong {
		*p = append(*p, fmt.Errorf("%s: %s: %s", field, what, todo))
	}
}

func (p *problems) require(field, value, todo string) {
	p.add(value == "", field, "is not set", todo)
}

func (p *problems) requireSecret(variable string, s secret.Value, what string) {
	p.add(!s.IsSet(), variable, "is not set", "set it to "+what+", or "+variable+"_FILE to a file that holds it")
}

func (p *problems) positive(field string, n int64) {
	p.add(n <= 0, field, "is not positive", "write a larger one, or delete the line for the default")
}

func (p *problems) notNegative(field string, n int64) {
	p.add(n < 0, field, "is negative", "write a larger one, or delete the line for the default")
}

func (p *problems) rate(field string, perSecond float64) {
	p.add(perSecond < 0, field, "is negative", "write a number of starts per second, or 0 for no limit")
}

func (p *problems) atMost(field string, ttl, limit time.Duration) {
	p.add(ttl <= 0 || ttl > limit, field, fmt.Sprintf("%s is not allowed", ttl),
		fmt.Sprintf("write at most %.0fh (security 9.4)", limit.Hours()))
}

func (p *problems) oneOf(field, value string, allowed ...string) {
	what := "is not set"
	if value != "" {
		what = strconv.Quote(value) + " is no choice"
	}
	p.add(!slices.Contains(allowed, value), field, what, "write one of "+strings.Join(allowed, ", "))
}

// address takes a bare mail address, or none.
func (p *problems) address(field, value string) {
	a, err := mail.ParseAddress(value)
	p.add(value != "" && (err != nil || a.Address != value), field, "is no mail address", "write one such as reviews@example.com")
}

// url parses value. The problem does not quote it: a wrong one may hold a password.
func (p *problems) url(field, value string) *url.URL {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		p.add(true, field, "is no http address", "write one such as https://host/path")
	case u.User != nil:
		p.add(true, field, "holds a user or password", "take it out: secrets come from the environment only")
	default:
		return u
	}
	return nil
}

// secretURL takes a URL that is itself a secret, or none: it must not cross a
// network in clear (security 9.3).
func (p *problems) secretURL(variable string, s secret.Value) {
	if !s.IsSet() {
		return
	}
	u := p.url(variable, s.Reveal())
	p.add(u != nil && u.Scheme == "http" && !loopback(u.Hostname()), variable, "would be sent in clear to another host", "use https")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
