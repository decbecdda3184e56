package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/internal/temporal/temporaltest"
	"github.com/criticizer/criticizer/workflows/contract"
)

// serverName is in the certificate of the server, whose address is another.
const serverName = "temporal.example.com"

// A real server that demands client certificates: every command connects with a profile of
// its own, and no other way in works.
func TestTemporalWithMutualTLS(t *testing.T) {
	t.Parallel()
	certs := newAuthority(t)
	address := startTemporalTLS(t, certs)
	in := newInstallation(t, newDepot(t, manyChanges(1)...))
	admin := certs.client(t, "admin")
	in.namespace, in.temporal = temporaltest.NewAt(t, temporal.Config{Address: address, Client: admin}, contract.Attributes()...)
	profiles := in.path("temporal.toml")
	in.write("temporal.toml", 0o600, certs.profile(t, "worker")+certs.profile(t, "starter")+certs.profile(t, "operator"))
	in.env = append(in.env, "CRITICIZER_TEMPORAL_ADDRESS="+address, "CRITICIZER_TEMPORAL_NAMESPACE="+in.temporal.Name, "TEMPORAL_CONFIG_FILE="+profiles)
	as := func(profile string) []string { return []string{"TEMPORAL_PROFILE=" + profile} }

	in.env = append(in.env, as("worker")...)
	in.startWorker()
	if r := in.execute(as("starter"), "starter", "change-commit", "--timeout", "1m", "--wait", "1"); r.status != exitOK {
		t.Fatalf("starter: %+v", r)
	}
	if r := in.execute(as("operator"), "criticizer", "top"); r.status != exitOK {
		t.Errorf("operator: %+v", r)
	}
	if mails := in.mails(1); len(mails) != 1 {
		t.Errorf("%d mails about the change, want 1", len(mails))
	}

	foreign := newAuthority(t)
	cert, key := certs.issue(t, "client")
	for name, variables := range map[string][]string{
		"no TLS":                  {"TEMPORAL_TLS=false"},
		"no client certificate":   {"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + certs.file, "TEMPORAL_TLS_SERVER_NAME=" + serverName},
		"a server of another CA":  {"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + foreign.file, "TEMPORAL_TLS_SERVER_NAME=" + serverName, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + cert, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + key},
		"a server of other name":  {"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + certs.file, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + cert, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + key, "TEMPORAL_TLS_SERVER_NAME=other.example.com"},
		"a client of another CA":  append(foreign.variables(t, "client"), "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+certs.file),
		"only a server's address": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := dialWith(t, address, in.temporal.Name, variables); err == nil {
				t.Error("the server let it in")
			}
		})
	}
	t.Run("the certificates as variables", func(t *testing.T) {
		t.Parallel()
		if err := dialWith(t, address, in.temporal.Name, certs.variables(t, "client")); err != nil {
			t.Error(err)
		}
	})
}

// dialWith connects as a command with these variables and no file does.
func dialWith(t *testing.T, address, namespace string, variables []string) error {
	t.Helper()
	env := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": address, "CRITICIZER_TEMPORAL_NAMESPACE": namespace}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	cfg, err := settings.Load("/dev/null", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Check(settings.RoleStarter); err != nil {
		t.Fatal(err)
	}
	n, err := temporal.Dial(t.Context(), log.NewStructuredLogger(slog.New(slog.DiscardHandler)), cfg.Temporal)
	if err == nil {
		n.Close()
	}
	return err
}

// startTemporalTLS starts Temporal's own server, with a frontend that demands client
// certificates of the authority, and returns the frontend's address.
func startTemporalTLS(t *testing.T, certs authority) string {
	t.Helper()
	cert, key := certs.issue(t, serverName)
	return startTemporalServer(t, fmt.Sprintf(`
  defaultStore: sqlite
  visibilityStore: sqlite
  numHistoryShards: 1
  datastores:
    sqlite:
      sql: {pluginName: sqlite, connectProtocol: tcp, connectAddr: unused, databaseName: %q, connectAttributes: {mode: rwc, setup: "true", journal_mode: wal, synchronous: "off"}}`,
		filepath.Join(t.TempDir(), "temporal.db")), fmt.Sprintf(`
  tls:
    frontend:
      server: {certFile: %[1]q, keyFile: %[2]q, requireClientAuth: true, clientCaFiles: [%[3]q]}
      client: {serverName: %[4]q, rootCaFiles: [%[3]q]}
    systemWorker:
      certFile: %[1]q
      keyFile: %[2]q
      client: {serverName: %[4]q, rootCaFiles: [%[3]q]}`, cert, key, certs.file, serverName),
		"system.forceSearchAttributesCacheRefreshOnRead:\n  - value: true\n").Address
}

// startTemporalServer starts Temporal's own server. persistence and tls are parts of its
// configuration, tls empty for none; dynamic is added to its dynamic configuration.
func startTemporalServer(t *testing.T, persistence, tls, dynamic string) *temporalServer {
	t.Helper()
	command := lookUp("../build/bin/temporal-server")
	if command == "" {
		need(t, "there is no Temporal server with TLS: run make build/bin/temporal-server")
	}
	dir := t.TempDir()
	var ports []any
	for range 8 {
		_, port, _ := net.SplitHostPort(freeAddress(t))
		ports = append(ports, port)
	}
	text := fmt.Sprintf(`
log: {stdout: true, level: error}
persistence: %[9]s
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}%[10]s
services:
  frontend: {rpc: {grpcPort: %[1]s, membershipPort: %[2]s, bindOnLocalHost: true}}
  matching: {rpc: {grpcPort: %[3]s, membershipPort: %[4]s, bindOnLocalHost: true}}
  history: {rpc: {grpcPort: %[5]s, membershipPort: %[6]s, bindOnLocalHost: true}}
  worker: {rpc: {grpcPort: %[7]s, membershipPort: %[8]s, bindOnLocalHost: true}}
clusterMetadata:
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation: {active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:%[1]s"}}
dcRedirectionPolicy: {policy: noop}
publicClient: {hostPort: "127.0.0.1:%[1]s"}
dynamicConfigClient: {filepath: %[11]q, pollInterval: 1h}
`, append(ports, persistence, tls, filepath.Join(dir, "dynamic.yaml"))...)
	for name, text := range map[string]string{
		"test.yaml":    text,
		"dynamic.yaml": "matching.numTaskqueueReadPartitions:\n  - value: 1\nmatching.numTaskqueueWritePartitions:\n  - value: 1\n" + dynamic,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &temporalServer{
		Address: fmt.Sprintf("127.0.0.1:%s", ports[0]), command: command, log: filepath.Join(dir, "temporal.log"),
		args: []string{"--root", dir, "--config", ".", "--env", "test", "--allow-no-auth", "start"},
	}
	s.start(t)
	t.Cleanup(func() {
		s.kill()
		if log, err := os.ReadFile(s.log); t.Failed() && err == nil {
			t.Logf("end of the log of Temporal:\n%s", log[max(0, len(log)-10_000):])
		}
	})
	return s
}

// An authority issues certificates.
type authority struct {
	file string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	a.sign(t, a.cert, a.key, a.file)
	return a
}

// issue writes a certificate for server and client, and its key.
func (a authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir() // parallel tests issue certificates of the same name
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	key := newKey(t)
	a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, key, certFile)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, keyFile, "PRIVATE KEY", private)
	return certFile, keyFile
}

func (a authority) sign(t *testing.T, about *x509.Certificate, key *ecdsa.PrivateKey, file string) {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, about, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", signed)
}

// profile returns a profile of the temporal command with a certificate of its own.
func (a authority) profile(t *testing.T, name string) string {
	t.Helper()
	cert, key := a.issue(t, name)
	return fmt.Sprintf("[profile.%s.tls]\nserver_name = %q\nserver_ca_cert_path = %q\nclient_cert_path = %q\nclient_key_path = %q\n", name, serverName, a.file, cert, key)
}

// variables is the same for a command without a file.
func (a authority) variables(t *testing.T, name string) []string {
	t.Helper()
	cert, key := a.issue(t, name)
	return []string{
		"TEMPORAL_TLS_SERVER_NAME=" + serverName, "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + a.file,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + cert, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + key,
	}
}

// client returns the options of the test's own connection.
func (a authority) client(t *testing.T, name string) client.Options {
	t.Helper()
	certFile, keyFile := a.issue(t, name)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.parsed(t))
	return client.Options{ConnectionOptions: client.ConnectionOptions{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, RootCAs: roots, Certificates: []tls.Certificate{pair}},
	}}
}

func (a authority) parsed(t *testing.T) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
