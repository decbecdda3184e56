package temporal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
)

// Config describes the connection to the namespace. Certificates, TLS and all else come from
// a profile of the temporal command, which [Config.Resolve] reads. As for that command,
// TEMPORAL_PROFILE names it, and TEMPORAL_CONFIG_FILE its file.
type Config struct {
	// Host and port of the Temporal frontend. Empty: TEMPORAL_ADDRESS, the profile's
	// address, or 127.0.0.1:7233.
	Address string `yaml:"address"`
	// Temporal namespace. Empty: TEMPORAL_NAMESPACE, the profile's namespace, or
	// criticizer.
	Name string `yaml:"namespace"`
	// API key of the namespace. Unset: the profile's key, or none.
	APIKey secret.Value `yaml:"api_key" env:"TEMPORAL_API_KEY"`

	// URL of the Temporal UI, such as https://temporal.example.com, to which pages and
	// dead letters link. Empty: no links.
	UIURL string `yaml:"ui_url" check:"http-url"`

	// Client has TLS, credentials and headers of the connection. The API key is read for
	// every call, and the client certificate for every connection: both can be rotated.
	Client client.Options
	// Metrics receives the metrics of the SDK and of activities. Default: none.
	Metrics client.MetricsHandler
	// Interceptors record traces. Default: none.
	Interceptors []interceptor.ClientInterceptor
	// OnClose, if set, is called when the connection is closed.
	OnClose func()

	problem error // why there is no profile
}

// Resolve reads the profile, which completes what the section leaves out.
func (c *Config) Resolve(getenv func(string) string) {
	named := getenv("TEMPORAL_CONFIG_FILE")
	file := cmp.Or(named, envconfig.DefaultConfigFilePath())
	from := envconfig.LoadClientConfigProfileOptions{ConfigFilePath: named, ConfigFileProfile: getenv("TEMPORAL_PROFILE"), EnvLookup: environ(getenv)}
	_, missing := os.Stat(file)
	if missing != nil && named == "" && from.ConfigFileProfile == "" {
		from.DisableFile = true // a service may have no home, or may not enter it
	}
	profile, err := envconfig.LoadClientConfigProfile(from)
	c.Address = cmp.Or(c.Address, profile.Address, "127.0.0.1:7233")
	c.Name = cmp.Or(c.Name, profile.Namespace, "criticizer")
	if named != "" && missing != nil { // envconfig ignores it
		err = missing
	}
	if err == nil {
		err = c.checkFiles(profile, file)
	}
	if !c.APIKey.IsSet() {
		c.APIKey = secret.New(profile.APIKey)
	}
	profile.APIKey = c.APIKey.Reveal() // a key turns TLS on
	if err == nil {
		c.Client, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	}
	if e, ok := errors.AsType[toml.ParseError](err); ok { // its text may quote a secret
		err = fmt.Errorf("line %d of %s is not TOML", e.Position.Line, file)
	}
	c.problem = err
	if key := c.APIKey; key.IsSet() {
		c.Client.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return key.Reveal(), nil })
	}
	if t := c.Client.ConnectionOptions.TLS; t != nil {
		t.MinVersion = tls.VersionTLS12
		if p := profile.TLS; p != nil && p.ClientCertPath != "" {
			t.Certificates, t.GetClientCertificate = nil, keyPair(p.ClientCertPath, p.ClientKeyPath)
		}
	}
}

// checkFiles refuses a file with a secret that everyone can access, as package secret does.
// profile is from file.
func (c *Config) checkFiles(profile envconfig.ClientConfigProfile, file string) error {
	var private []string
	if profile.APIKey != "" && !c.APIKey.IsSet() {
		private = append(private, file)
	}
	if t := profile.TLS; t != nil {
		private = append(private, t.ClientKeyPath)
		if len(t.ClientKeyData) > 0 {
			private = append(private, file)
		}
	}
	for _, path := range private {
		if info, err := os.Stat(path); err == nil && secret.Exposed(info, 0o007) {
			return fmt.Errorf("everyone can access it, run chmod o-rwx %q", path)
		}
	}
	return nil
}

// keyPair returns a reader of the client certificate.
func keyPair(cert, key string) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
}

// environ is an environment as envconfig reads it. An empty variable is unset.
type environ func(string) string

func (e environ) LookupEnv(name string) (string, bool) { return e(name), e(name) != "" }

// Environ returns the environment of the process. It is searched for TEMPORAL_GRPC_META_*.
func (environ) Environ() []string { return os.Environ() }

// Check implements the checks of package config.
func (c *Config) Check(p *config.Problems) {
	if c.problem != nil {
		p.Add(true, "address", "has an unusable profile, "+strings.ReplaceAll(c.problem.Error(), ": ", ", "), "correct the profile, TEMPORAL_PROFILE or TEMPORAL_CONFIG_FILE")
	}
	p.Add(!c.hasPort(), "address", strconv.Quote(c.Address)+" is not host and port", "write it as 127.0.0.1:7233, without a scheme")
}

// RunURL returns the page of a run in the Temporal UI, or "" if its URL is not set.
func (c Config) RunURL(workflowID, runID string) string {
	if c.UIURL == "" {
		return ""
	}
	return strings.TrimRight(c.UIURL, "/") + "/namespaces/" + url.PathEscape(c.Name) + "/workflows/" + url.PathEscape(workflowID) + "/" + url.PathEscape(runID)
}

// hasPort reports whether the address is that of a gRPC server: host:port or dns:///host:port.
func (c *Config) hasPort() bool {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(c.Address, "dns:///"))
	_, number := strconv.ParseUint(port, 10, 16)
	return err == nil && number == nil
}

// Connections returns the connection to the server. A profile or address that cannot be used counts as
// encrypted: Check reports it.
func (c *Config) Connections() []config.Connection {
	return []config.Connection{{
		Field: "address", Host: config.HostOf(c.Address), Encrypted: c.Client.ConnectionOptions.TLS != nil || c.problem != nil || !c.hasPort(),
		Hint: "enable TLS in the profile", SecretField: "api_key", Secret: c.APIKey,
	}}
}
