package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/criticizer/criticizer/internal/secret"
)

// Temporal configures the connection to Temporal. Certificates, TLS and all else come
// from a profile of the temporal command: its configuration file, and the variables
// TEMPORAL_TLS_* that precede it (docs/install.md).
type Temporal struct {
	// Host and port of the Temporal frontend. Empty: TEMPORAL_ADDRESS, the profile's
	// address, or 127.0.0.1:7233.
	Address string `yaml:"address"`
	// Temporal namespace. Empty: TEMPORAL_NAMESPACE, the profile's namespace, or
	// criticizer.
	Namespace string `yaml:"namespace"`
	// Profile in the configuration file of the temporal command. Empty: default, if
	// there is one.
	Profile string `yaml:"profile" env:"TEMPORAL_PROFILE"`
	// Configuration file of the temporal command. Empty:
	// ~/.config/temporalio/temporal.toml, if there is one.
	ConfigFile string `yaml:"config_file" env:"TEMPORAL_CONFIG_FILE"`
	// API key of the namespace. Unset: the profile's key, or none.
	APIKey secret.Value `yaml:"api_key" env:"TEMPORAL_API_KEY"`

	// URL of a change, with {changelist} in it, for the links in the Temporal UI, such as
	// https://swarm.example.com/changes/{changelist}. Stage workflows reads it. Empty: no
	// links.
	ChangeLink string `yaml:"change_link"`

	client  client.Options // from the profile
	problem error          // why there is no profile
}

// Client returns TLS, credentials and headers of the connection. The API key is read for
// every call, and the client certificate for every connection: both can be rotated.
func (t Temporal) Client() client.Options { return t.client }

// resolve reads the profile and completes the section from it.
func (t *Temporal) resolve(getenv func(string) string) {
	from := envconfig.LoadClientConfigProfileOptions{ConfigFilePath: t.ConfigFile, ConfigFileProfile: t.Profile, EnvLookup: environ(getenv)}
	if _, err := os.Stat(t.path()); err != nil && t.ConfigFile == "" && t.Profile == "" {
		from.DisableFile = true // a service may have no home, or may not enter it
	}
	profile, err := envconfig.LoadClientConfigProfile(from)
	t.Address = cmp.Or(t.Address, profile.Address, "127.0.0.1:7233")
	t.Namespace = cmp.Or(t.Namespace, profile.Namespace, "criticizer")
	if err == nil {
		err = t.checkFiles(profile)
	}
	if !t.APIKey.IsSet() {
		t.APIKey = secret.New(profile.APIKey)
	}
	profile.APIKey = t.APIKey.Reveal() // a key turns TLS on
	if err == nil {
		t.client, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	}
	if e, ok := errors.AsType[toml.ParseError](err); ok { // its text may quote a secret
		err = fmt.Errorf("line %d of %s is not TOML", e.Position.Line, t.path())
	}
	t.problem = err
	if key := t.APIKey; key.IsSet() {
		t.client.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return key.Reveal(), nil })
	}
	if c := t.client.ConnectionOptions.TLS; c != nil {
		c.MinVersion = tls.VersionTLS12
		if p := profile.TLS; p != nil && p.ClientCertPath != "" {
			c.Certificates, c.GetClientCertificate = nil, keyPair(p.ClientCertPath, p.ClientKeyPath)
		}
	}
}

func (t *Temporal) path() string { return cmp.Or(t.ConfigFile, envconfig.DefaultConfigFilePath()) }

// checkFiles refuses a file with a secret that everyone can access, as package secret
// does, and a configured file that does not exist, which envconfig ignores.
func (t *Temporal) checkFiles(profile envconfig.ClientConfigProfile) error {
	if _, err := os.Stat(t.ConfigFile); t.ConfigFile != "" && err != nil {
		return err
	}
	var private []string
	if profile.APIKey != "" && !t.APIKey.IsSet() {
		private = append(private, t.path())
	}
	if c := profile.TLS; c != nil {
		private = append(private, c.ClientKeyPath)
		if len(c.ClientKeyData) > 0 {
			private = append(private, t.path())
		}
	}
	for _, path := range private {
		if info, err := os.Stat(path); err == nil && secret.Exposed(info, 0o007) {
			return fmt.Errorf("everyone can access %s, run chmod o-rwx", path)
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

func (t Temporal) check(p *problems) {
	if t.ChangeLink != "" {
		p.add(!strings.Contains(t.ChangeLink, "{changelist}"), "temporal.change_link", "does not contain {changelist}", "put it where the URL has the number")
		p.url("temporal.change_link", t.ChangeLink)
	}
	if t.problem != nil {
		p.add(true, "temporal.profile", strings.ReplaceAll(t.problem.Error(), ": ", ", "), "correct the profile, TEMPORAL_PROFILE or TEMPORAL_CONFIG_FILE")
	}
}

// encrypted is true of a profile that cannot be used: that is reported by itself.
func (t Temporal) encrypted() bool { return t.client.ConnectionOptions.TLS != nil || t.problem != nil }
