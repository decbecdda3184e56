package config

import (
	"errors"
	"fmt"
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

// A checker is a section with checks that tags cannot say.
type checker interface{ Check(p *Problems) }

// Check adds everything that is wrong with the struct that from points to, or only with the
// sections, if any are listed: what the tags refuse, what the methods Check of its sections
// refuse, and connections in clear text.
func (p Program) Check(from any, problems *Problems, sections ...string) {
	problems.check(p.walk(reflect.ValueOf(from).Elem(), ""), sections)
	p.CheckClearText(from, problems, sections...)
}

// Validate checks one section of the criticizer programs, which of points to, apart from its
// connections. Constructors use it: a section that was not read by a program is checked too.
func Validate(name string, of any) error {
	var p Problems
	section := Setting{Name: name, Section: true, value: reflect.ValueOf(of).Elem()}
	p.check(append([]Setting{section}, Program{Prefix: "CRITICIZER"}.walk(section.value, name+".")...), nil)
	return p.Err()
}

// check checks the settings that are in the sections, or all if none are listed.
func (p *Problems) check(all []Setting, sections []string) {
	p.settings = all
	for _, s := range all {
		switch {
		case !isIn(s.Name, sections):
		case !s.Section:
			s.check(p)
		default:
			if c, ok := reflect.TypeAssert[checker](s.value.Addr()); ok {
				p.section = s.Name + "."
				c.Check(p)
				p.section = ""
			}
		}
	}
}

// A Problem is one thing that is wrong with a configuration.
type Problem struct{ Field, What, Hint string }

// Error returns "field: problem: hint".
func (p Problem) Error() string { return p.Field + ": " + p.What + ": " + p.Hint }

// Problems collects what is wrong with a configuration, each as a [Problem].
// Methods that get the name of a field look for it in the section that is checked. A field
// with a secret is reported by its variable.
type Problems struct {
	// AllowClearText lists the sections whose connections may be without TLS.
	AllowClearText []string

	found    []error
	settings []Setting
	section  string // prefix of the fields of the section that is checked
}

// Err returns the problems, or nil.
func (p *Problems) Err() error { return errors.Join(p.found...) }

// NameOf returns the full name of a field of the section, or the variable of a secret.
func (p *Problems) NameOf(name string) string {
	if i := slices.IndexFunc(p.settings, func(s Setting) bool { return s.Name == p.section+name }); i >= 0 {
		return p.settings[i].reported()
	}
	return p.section + name
}

// Add adds a problem with a field of the section, if it is wrong.
func (p *Problems) Add(wrong bool, field, what, hint string) {
	if !wrong {
		return
	}
	// A struct that embeds an inline one has its methods, too.
	if problem := (Problem{p.NameOf(field), what, hint}); !slices.Contains(p.found, error(problem)) {
		p.found = append(p.found, problem)
	}
}

// Require refuses an empty value.
func (p *Problems) Require(field, value, hint string) {
	p.Add(value == "", field, "is not set", "set it to "+hint)
}

// RequireSecret refuses a secret that is not set.
func (p *Problems) RequireSecret(field string, s secret.Value, hint string) {
	p.Add(!s.IsSet(), field, "is not set", "set it, or "+p.NameOf(field)+"_FILE to a file with it; it is "+hint)
}

// OneOf refuses a value that is not in the list.
func (p *Problems) OneOf(field, value string, allowed []string) {
	what := "is not set"
	if value != "" {
		what = strconv.Quote(value) + " is not allowed"
	}
	p.Add(!slices.Contains(allowed, value), field, what, "write one of "+strings.Join(allowed, ", "))
}

// Keys refuses a secret with more than two keys.
func (p *Problems) Keys(field string, s secret.Value) {
	p.Add(secret.CheckKeys(s) != nil, field, "holds more than two keys", "write the new one in the first line, the old one in the second")
}

// URL refuses a value that is not an HTTP URL, or holds a user or password. The problem does
// not quote it.
func (p *Problems) URL(field, value string) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		p.Add(true, field, "is not an HTTP URL", "write one such as https://host/path")
	case u.User != nil:
		p.Add(true, field, "holds a user or password", "delete it: secrets come from the environment only")
	}
}

// reported returns the name of the field in problems.
func (f Setting) reported() string {
	if f.Secret {
		return f.Variable
	}
	return f.Name
}

// check does the checks of the field's tags.
func (f Setting) check(p *Problems) {
	if hint := f.tag.Get("required"); hint != "" {
		if s, ok := f.secret(); ok {
			p.RequireSecret(f.Name, *s, hint)
		} else {
			empty := f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0
			p.Add(empty, f.Name, "is not set", "set it to "+hint)
		}
	}
	list := f.value.Kind() == reflect.Slice && f.value.Type().Elem().Kind() == reflect.String
	values := []reflect.Value{f.value}
	if list {
		values = nil
		for i := range f.value.Len() {
			values = append(values, f.value.Index(i))
		}
		p.Add(slices.ContainsFunc(values, reflect.Value.IsZero), f.Name, "holds an empty entry", "delete it")
	}
	if allowed := strings.Fields(f.tag.Get("oneof")); len(allowed) > 0 {
		for _, v := range values {
			p.OneOf(f.Name, v.String(), allowed)
		}
	}
	if limit, err := time.ParseDuration(f.tag.Get("max")); err == nil {
		p.Add(f.value.Int() > int64(limit), f.Name, fmt.Sprintf("%v is too long", f.value), fmt.Sprintf("write at most %.0fh", limit.Hours()))
	}
	if check := tagChecks[f.tag.Get("check")]; check != nil {
		check(p, f.Name, f.value)
	}
}

const larger = "write a larger number, or delete the line for the default"

// tagChecks are the values of the tag check.
var tagChecks = map[string]func(p *Problems, name string, v reflect.Value){
	"positive": func(p *Problems, name string, v reflect.Value) {
		p.Add(v.Int() <= 0, name, "is not positive", larger)
	},
	"not-negative": func(p *Problems, name string, v reflect.Value) {
		p.Add(v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0, name, "is negative", larger)
	},
	"port": func(p *Problems, name string, v reflect.Value) {
		p.Add(v.Int() < 1 || v.Int() > 65535, name, fmt.Sprintf("%d is not a port", v.Int()), "write 1 to 65535")
	},
	"http-url": func(p *Problems, name string, v reflect.Value) {
		if v.String() != "" {
			p.URL(name, v.String())
		}
	},
	// A mail address without a name, or none.
	"address": func(p *Problems, name string, v reflect.Value) {
		a, err := mail.ParseAddress(v.String())
		p.Add(v.String() != "" && (err != nil || a.Address != v.String()), name, "is not a mail address", "write one such as reviews@example.com")
	},
}

// Loopback reports whether a host is this one.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
