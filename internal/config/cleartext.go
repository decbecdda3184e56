package config

import (
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A Connection is one that a process would make, as its section describes it.
type Connection struct {
	Field     string // that describes it
	Host      string
	Encrypted bool
	Hint      string // how to encrypt it
	// SecretField is the field of the secret that is sent, if Secret is set.
	SecretField string
	Secret      secret.Value
}

// CheckClearText adds the connections of the struct that from points to which would send
// something in clear. [Program.Check] includes it.
func (p Program) CheckClearText(from any, problems *Problems, sections ...string) {
	problems.settings = p.walk(reflect.ValueOf(from).Elem(), "")
	for _, s := range problems.settings {
		c, ok := reflect.TypeAssert[interface{ Connections() []Connection }](s.value.Addr())
		if !ok || !isIn(s.Name, sections) {
			continue
		}
		problems.section = s.Name + "."
		top, _, _ := strings.Cut(s.Name, ".")
		for _, to := range c.Connections() {
			problems.clearText(to, top)
		}
	}
	problems.section = ""
}

// clearText refuses a connection to another host without TLS, unless its section is allowed
// to and it sends no secret.
func (p *Problems) clearText(to Connection, section string) {
	switch {
	case to.Encrypted || Loopback(to.Host):
	case to.Secret.IsSet():
		p.Add(true, to.Field, "would send "+p.NameOf(to.SecretField)+" in clear", to.Hint+", or unset the secret")
	case !slices.Contains(p.AllowClearText, section):
		p.Add(true, to.Field, "would be used without TLS", to.Hint+", or add "+section+" to allow_cleartext")
	}
}

// OverHTTP returns the connection to a URL, which [Problems.URL] checks.
func OverHTTP(field, address, secretField string, s secret.Value) Connection {
	u, err := url.Parse(address)
	if err != nil {
		u = new(url.URL)
	}
	return Connection{field, u.Hostname(), u.Scheme != "http", "use https", secretField, s}
}

// HostOf returns the host of host:port, or all of an address of another form.
func HostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
