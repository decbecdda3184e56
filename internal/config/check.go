package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/mail"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// Check returns an error that lists everything that keeps a process with the roles
// from working, each as "field: problem: hint"; a secret is named by its variable.
// Sections that none of the roles needs are not checked.
func (c *Config) Check(roles ...Role) error {
	var p problems
	for _, role := range roles {
		p.add(needs[role] == nil, "role "+string(role), "is unknown", fmt.Sprintf("use one of %v", slices.Sorted(maps.Keys(needs))))
	}
	everywhere := []string{"server_id", "allow_cleartext", "shelf", "worker", "breaker", "log"}
	sections := slices.Concat(everywhere, c.sections(roles))
	for _, f := range fieldsOf(c) {
		// Every worker of workflows schedules the reconciliation, with or without mail.
		if f.isIn(sections) || f.name == "mail.reconcile_every" {
			f.check(&p)
		}
	}
	for _, s := range []struct {
		name  string
		check func(*problems)
	}{
		{"temporal", c.Temporal.check}, {"llm", c.LLM.check}, {"mail", c.Mail.check}, {"webhook", c.Webhook.check}, {"swarm", c.Swarm.check}, {"links", c.Links.check},
		{"feedback", c.Feedback.check}, {"oncall", c.OnCall.check}, {"rewrite", c.Rewrite.check}, {"breaker", c.Breaker.check},
	} {
		if slices.Contains(sections, s.name) {
			s.check(&p)
		}
	}
	c.checkClearText(&p, sections)
	if len(p) == 0 {
		return nil
	}
	return fmt.Errorf("check configuration:\n%w", errors.Join(p...))
}

// check does the checks of the field's tags.
func (f field) check(p *problems) {
	if hint := f.tag.Get("required"); hint != "" {
		if s, ok := f.secret(); ok {
			p.requireSecret(f.variable, *s, hint)
		} else {
			empty := f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0
			p.add(empty, f.name, "is not set", "set it to "+hint)
		}
	}
	if allowed := strings.Fields(f.tag.Get("oneof")); len(allowed) > 0 {
		p.oneOf(f.name, f.value.String(), allowed)
	}
	if list, ok := reflect.TypeAssert[[]string](f.value); ok {
		p.add(slices.Contains(list, ""), f.name, "holds an empty entry", "delete it")
	}
	if limit, err := time.ParseDuration(f.tag.Get("max")); err == nil {
		p.add(f.value.Int() > int64(limit), f.name, fmt.Sprintf("%v is too long", f.value), fmt.Sprintf("write at most %.0fh", limit.Hours()))
	}
	if check := tagChecks[f.tag.Get("check")]; check != nil {
		check(p, f.name, f.value)
	}
}

const larger = "write a larger number, or delete the line for the default"

// tagChecks are the values of the tag check.
var tagChecks = map[string]func(p *problems, name string, v reflect.Value){
	"positive": func(p *problems, name string, v reflect.Value) {
		p.add(v.Int() <= 0, name, "is not positive", larger)
	},
	"not-negative": func(p *problems, name string, v reflect.Value) {
		p.add(v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0, name, "is negative", larger)
	},
	"port": func(p *problems, name string, v reflect.Value) {
		p.add(v.Int() < 1 || v.Int() > 65535, name, fmt.Sprintf("%d is not a port", v.Int()), "write 1 to 65535")
	},
	"http-url": func(p *problems, name string, v reflect.Value) { p.url(name, v.String()) },
	"address":  func(p *problems, name string, v reflect.Value) { p.address(name, v.String()) },
}

// problems collects problems, each as "field: problem: hint".
type problems []error

func (p *problems) add(wrong bool, field, what, hint string) {
	if wrong {
		*p = append(*p, fmt.Errorf("%s: %s: %s", field, what, hint))
	}
}

func (p *problems) require(field, value, hint string) {
	p.add(value == "", field, "is not set", "set it to "+hint)
}

func (p *problems) requireSecret(variable string, s secret.Value, hint string) {
	p.add(!s.IsSet(), variable, "is not set", "set it to "+hint+", or "+variable+"_FILE to a file with it")
}

func (p *problems) oneOf(field, value string, allowed []string) {
	what := "is not set"
	if value != "" {
		what = strconv.Quote(value) + " is not allowed"
	}
	p.add(!slices.Contains(allowed, value), field, what, "write one of "+strings.Join(allowed, ", "))
}

// replacement rejects the previous secret of a rotation without the new one.
func (p *problems) replacement(oldVariable string, previous secret.Value, variable string, s secret.Value) {
	p.add(previous.IsSet() && !s.IsSet(), oldVariable, "is set, but "+variable+" is not", "set both, or neither")
}

// credentials wants a password or a token file, not both.
func (p *problems) credentials(section, variable, tokenFile string, password secret.Value) {
	if tokenFile == "" {
		p.requireSecret(variable, password, "the password of "+section+".username")
	}
	p.add(tokenFile != "" && password.IsSet(), section+".token_file", "is set, and so is "+variable, "set one of them")
}

// address accepts a mail address without a name, or none.
func (p *problems) address(field, value string) {
	a, err := mail.ParseAddress(value)
	p.add(value != "" && (err != nil || a.Address != value), field, "is not a mail address", "write one such as reviews@example.com")
}

// url checks an HTTP URL. The problem does not quote it: it may hold a password.
func (p *problems) url(field, value string) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		p.add(true, field, "is not an HTTP URL", "write one such as https://host/path")
	case u.User != nil:
		p.add(true, field, "holds a user or password", "delete it: secrets come from the environment only")
	}
}

// secretURL checks a URL that is itself a secret, if it is set: see also [connection].
func (p *problems) secretURL(variable string, s secret.Value) {
	if s.IsSet() {
		p.url(variable, s.Reveal())
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
