package temporal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/testkit"
)

type file struct {
	Temporal temporal.Config `yaml:"temporal"`
}

var program = config.Program{Prefix: "CRITICIZER"}

// read reads a file with this text.
func read(t *testing.T, yaml string, env map[string]string) file {
	t.Helper()
	path := filepath.Join(t.TempDir(), "criticizer.yaml")
	write(t, path, 0o600, yaml)
	getenv := func(name string) string { return env[name] }
	var c file
	testkit.NoError(t, program.Read(&c, path, getenv))
	c.Temporal.Resolve(getenv)
	return c
}

// The profile of the temporal command fills in what the section leaves out. The section
// precedes the environment, and that precedes the file.
func TestTemporalProfile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.toml")
	write(t, file, 0o640, `
[profile.default]
address = "file:7233"
namespace = "ours"
[profile.cloud]
address = "cloud:7233"
api_key = "hunter2"
[profile.clear]
address = "clear:7233"
api_key = "hunter2"
tls = {disabled = true}
`)
	for name, tt := range map[string]struct {
		yaml      string
		env       map[string]string
		address   string
		namespace string
		tls, key  bool
	}{
		"nothing":             {"", map[string]string{"TEMPORAL_CONFIG_FILE": ""}, "127.0.0.1:7233", "criticizer", false, false},
		"the default profile": {"", nil, "file:7233", "ours", false, false},
		"a profile":           {"", map[string]string{"TEMPORAL_PROFILE": "cloud"}, "cloud:7233", "criticizer", true, true},
		"variables":           {"", map[string]string{"TEMPORAL_ADDRESS": "env:7233", "TEMPORAL_NAMESPACE": "env", "TEMPORAL_TLS": "true"}, "env:7233", "env", true, false},
		"the section":         {"temporal: {address: 'yaml:7233', namespace: yaml}", map[string]string{"TEMPORAL_ADDRESS": "env:7233", "TEMPORAL_NAMESPACE": "env"}, "yaml:7233", "yaml", false, false},
		"a key":               {"", map[string]string{"TEMPORAL_API_KEY": "hunter2"}, "file:7233", "ours", true, true},
		"a key without TLS":   {"", map[string]string{"TEMPORAL_PROFILE": "clear"}, "clear:7233", "criticizer", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{"TEMPORAL_CONFIG_FILE": file}
			maps.Copy(vars, tt.env)
			c := read(t, tt.yaml, vars)
			got := c.Temporal
			if got.Address != tt.address || got.Name != tt.namespace || got.APIKey.IsSet() != tt.key || (got.Client.Credentials != nil) != tt.key {
				t.Errorf("connects to %s in %s, with a key: %t", got.Address, got.Name, got.APIKey.IsSet())
			}
			if err := config.Validate("temporal", &c.Temporal); err != nil || (got.Client.ConnectionOptions.TLS != nil) != tt.tls {
				t.Errorf("TLS is %+v (%v), want any: %t", got.Client.ConnectionOptions.TLS, err, tt.tls)
			}
			if strings.Contains(fmt.Sprintf("%+v %#v", c, got), "hunter2") {
				t.Error("the configuration prints the key")
			}
		})
	}
}

func TestTemporalProfileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := writePair(t, dir, "worker")
	open := filepath.Join(dir, "open.key")
	text, err := os.ReadFile(key)
	testkit.NoError(t, err)
	write(t, open, 0o644, string(text))
	for name, tt := range map[string]struct {
		toml string
		mode os.FileMode
		env  map[string]string
		want string // part of the only problem
	}{
		"no file":                {"", 0, nil, "no such file"},
		"no such profile":        {"", 0o600, map[string]string{"TEMPORAL_PROFILE": "gone"}, "gone"},
		"not TOML":               {"[profile.default]\napi_key = hunter2", 0o600, nil, "line 2"},
		"a key for everyone":     {"[profile.default]\napi_key = 'hunter2'", 0o644, nil, "chmod"},
		"a certificate alone":    {fmt.Sprintf("[profile.default.tls]\nclient_cert_path = %q", cert), 0o600, nil, "other must be present"},
		"a missing certificate":  {fmt.Sprintf("[profile.default.tls]\nclient_cert_path = '/missing'\nclient_key_path = %q", key), 0o600, nil, "/missing"},
		"a private key for all":  {fmt.Sprintf("[profile.default.tls]\nclient_cert_path = %q\nclient_key_path = %q", cert, open), 0o600, nil, open},
		"a CA that is not PEM":   {fmt.Sprintf("[profile.default.tls]\nserver_ca_cert_path = %q", key), 0o600, nil, "CA"},
		"a key in the file, too": {"[profile.default.tls]\nclient_key_data = 'hunter2'", 0o644, nil, "chmod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "temporal.toml")
			if tt.mode != 0 {
				write(t, file, tt.mode, tt.toml)
			}
			vars := map[string]string{"TEMPORAL_CONFIG_FILE": file}
			maps.Copy(vars, tt.env)
			c := read(t, "", vars)
			err := config.Validate("temporal", &c.Temporal)
			if err == nil || !strings.HasPrefix(err.Error(), "temporal.address: has an unusable profile, ") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("problems %v, want one of the profile about %q", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("the problem shows a key: %v", err)
			}
		})
	}
}

// An address is host and port; the two mistakes of newcomers have one sentence each.
func TestAddressIsHostAndPort(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"127.0.0.1:7233": false, "[::1]:7233": false, "dns:///temporal.example.com:7233": false,
		"http://127.0.0.1:7233": true, "127.0.0.1": true, "127.0.0.1:": true, "http://127.0.0.1": true,
	} {
		c := read(t, "temporal:\n  address: "+strconv.Quote(address)+"\n", nil)
		problems := config.Problems{AllowClearText: []string{"temporal"}}
		program.Check(&c, &problems)
		if err := problems.Err(); (err != nil) != refused || refused && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "without a scheme")) {
			t.Errorf("%s: %v, want it refused: %t", address, err, refused)
		}
	}
}

// A client certificate that was replaced is used for the next connection.
func TestTemporalCertificateIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := writePair(t, dir, "old")
	c := read(t, "", map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": cert, "TEMPORAL_TLS_CLIENT_KEY_PATH": key})
	newCert, newKey := writePair(t, dir, "new")
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		testkit.NoError(t, os.Rename(from, to))
	}
	pair, err := c.Temporal.Client.ConnectionOptions.TLS.GetClientCertificate(nil)
	if err != nil || pair.Leaf.Subject.CommonName != "new" {
		t.Errorf("the certificate is %v: %v", pair.Leaf, err)
	}
}

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	write(t, certFile, 0o644, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	write(t, keyFile, 0o600, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certFile, keyFile
}

func write(t *testing.T, path string, mode os.FileMode, text string) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(path, []byte(text), mode))
}
