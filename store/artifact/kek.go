package artifact

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/core/registry"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// A KEK is the key-encryption key of a keyset in a key management service. The zero KEK
// leaves keysets in clear text.
type KEK struct {
	// Key in a key management service that encrypts the keysets, such as
	// hcvault://vault.example.com:8200/transit/keys/criticizer. Unset if the keysets are
	// in clear text.
	URI string `yaml:"kek_uri"`
	// Token for the key management service.
	Token secret.Value `yaml:"kek_token" env:"CRITICIZER_KEK_TOKEN"`

	roots *x509.CertPool // nil: those of the system
}

// aead returns the key through Tink's registry. A program that uses another service
// registers that service's client first.
func (k KEK) aead() (*remembering, error) {
	client, err := registry.GetKMSClient(k.URI)
	if err != nil {
		client = vault{k}
		registry.RegisterKMSClient(client)
	}
	key, err := client.GetAEAD(k.URI)
	return &remembering{AEAD: key}, err
}

// remembering keeps the error of the service, which Tink does not wrap.
type remembering struct {
	tink.AEAD
	failed error
}

// Decrypt implements [tink.AEAD].
func (r *remembering) Decrypt(ciphertext, associated []byte) (body []byte, err error) {
	body, r.failed = r.AEAD.Decrypt(ciphertext, associated)
	return body, r.failed
}

// vault is the client of a key in the transit engine of HashiCorp Vault or OpenBao. It
// accepts the URIs of Tink's own client, which would add 14 modules for two requests, and
// half a millisecond to the start of every trigger.
type vault struct{ kek KEK }

// Supported implements [registry.KMSClient].
func (v vault) Supported(uri string) bool { return uri == v.kek.URI }

// GetAEAD implements [registry.KMSClient].
func (v vault) GetAEAD(uri string) (tink.AEAD, error) {
	at, err := url.Parse(uri)
	if err != nil || at.Scheme != "hcvault" || at.Host == "" || at.User != nil || strings.Count(at.Path, "/keys/") != 1 {
		return nil, failure.Errorf(failure.ConfigInvalid, "artifacts.kek_uri: want hcvault://host:port/transit/keys/name")
	}
	return transit{v.kek, at}, nil
}

// transit is a key of Vault's transit engine.
type transit struct {
	kek KEK
	at  *url.URL
}

// Encrypt implements [tink.AEAD].
func (t transit) Encrypt(plaintext, associated []byte) ([]byte, error) {
	var answer struct{ Data struct{ Ciphertext string } }
	err := t.post("encrypt", map[string]any{"plaintext": plaintext, "associated_data": associated}, &answer)
	return []byte(answer.Data.Ciphertext), err
}

// Decrypt implements [tink.AEAD].
func (t transit) Decrypt(ciphertext, associated []byte) ([]byte, error) {
	var answer struct{ Data struct{ Plaintext []byte } }
	err := t.post("decrypt", map[string]any{"ciphertext": string(ciphertext), "associated_data": associated}, &answer)
	return answer.Data.Plaintext, err
}

const (
	vaultTimeout = 10 * time.Second
	vaultLimit   = 1 << 20 // bytes of an answer
)

// post sends one request, over TLS only. Errors quote no answer: it may hold a key.
func (t transit) post(operation string, body map[string]any, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), vaultTimeout)
	defer stop()
	target := "https://" + t.at.Host + "/v1" + strings.Replace(t.at.EscapedPath(), "/keys/", "/"+operation+"/", 1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	req.Header.Set("X-Vault-Token", t.kek.Token.Reveal())
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: t.kek.roots, MinVersion: tls.VersionTLS12},
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return failure.Errorf(failure.UpstreamUnavailable, "%s keyset at %s: %w", operation, t.at.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return failure.Errorf(classOfStatus(resp.StatusCode), "%s keyset at %s: status %d", operation, t.at.Host, resp.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, vaultLimit)).Decode(answer) != nil {
		return failure.Errorf(failure.SchemaInvalid, "%s keyset at %s: the answer does not have the form of Vault", operation, t.at.Host)
	}
	return nil
}

func classOfStatus(status int) failure.Class {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failure.AuthDenied
	case status >= http.StatusInternalServerError:
		return failure.UpstreamUnavailable
	}
	return failure.ConfigInvalid
}
