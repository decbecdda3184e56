package artifact

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// fakeVault answers as the transit engine does. Its ciphertext is the reversed base64 text.
type fakeVault struct {
	mu     sync.Mutex
	token  string
	status int // if set, of every answer
	calls  map[string]int
}

func (v *fakeVault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls[r.URL.Path]++
	var asked struct{ Plaintext, Ciphertext string }
	switch err := json.NewDecoder(r.Body).Decode(&asked); {
	case v.status != 0:
		w.WriteHeader(v.status)
	case r.Header.Get("X-Vault-Token") != v.token:
		w.WriteHeader(http.StatusForbidden)
	case err != nil || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == "/v1/transit/encrypt/criticizer":
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"ciphertext": "vault:v1:" + reversed(asked.Plaintext)}})
	case r.URL.Path == "/v1/transit/decrypt/criticizer" && strings.HasPrefix(asked.Ciphertext, "vault:v1:"):
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"plaintext": reversed(strings.TrimPrefix(asked.Ciphertext, "vault:v1:"))}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (v *fakeVault) set(token string, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.token, v.status = token, status
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func newVault(t *testing.T) (*fakeVault, KEK) {
	t.Helper()
	v := &fakeVault{token: "t-1", calls: map[string]int{}}
	server := httptest.NewTLSServer(v)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return v, KEK{
		URI:   "hcvault://" + server.Listener.Addr().String() + "/transit/keys/criticizer",
		Token: secret.New("t-1"), roots: roots,
	}
}

// With a KEK, the file of a keyset holds no key, and the service is asked once for each
// keyset, not for each artifact.
func TestKeysetIsEncryptedByTheKEK(t *testing.T) {
	t.Parallel()
	v, kek := newVault(t)
	keyset, err := NewKeyset(kek)
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		EncryptedKeyset []byte
		Key             []any
	}
	if err := json.Unmarshal([]byte(keyset.Reveal()), &stored); err != nil || len(stored.EncryptedKeyset) == 0 || stored.Key != nil {
		t.Fatalf("the keyset is not encrypted: %v", err)
	}
	s, err := New(&fakeBlobs{}, Config{Namespace: review.NamespaceRaw, Keyset: keyset, KEK: kek, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"first", "second"} {
		if got, err := s.Get(t.Context(), owner, put(t, s, []byte(body))); err != nil || string(got) != body {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if n := v.calls["/v1/transit/decrypt/criticizer"]; n != 1 {
		t.Errorf("the service decrypted %d times, want 1", n)
	}
	rotated, err := RotateKeyset(keyset, kek)
	if err != nil || CheckKeyset(rotated, kek) != nil {
		t.Errorf("rotation: %v", err)
	}
	if adopted, err := RotateKeyset(newKeyset(t), kek); err != nil || CheckKeyset(adopted, kek) != nil {
		t.Errorf("rotation of a keyset in clear text: %v", err)
	}
	wantClass(t, CheckKeyset(keyset, KEK{}), failure.ConfigInvalid)
	wantClass(t, CheckKeyset(newKeyset(t), kek), failure.ConfigInvalid)
}

func TestKEKRefuses(t *testing.T) {
	t.Parallel()
	v, kek := newVault(t)
	keyset, err := NewKeyset(kek)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token  string
		status int
		want   failure.Class
	}{
		"a token that was revoked":  {"t-2", 0, failure.AuthDenied},
		"a service that is sealed":  {"t-1", http.StatusServiceUnavailable, failure.UpstreamUnavailable},
		"a key that does not exist": {"t-1", http.StatusNotFound, failure.ConfigInvalid},
		"a redirect":                {"t-1", http.StatusTemporaryRedirect, failure.ConfigInvalid},
	} {
		v.set(tc.token, tc.status)
		err := CheckKeyset(keyset, kek)
		wantClass(t, err, tc.want)
		if strings.Contains(err.Error(), "t-1") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
	strange := kek
	strange.URI, strange.roots = strings.Replace(kek.URI, "criticizer", "another", 1), nil
	wantClass(t, CheckKeyset(keyset, strange), failure.UpstreamUnavailable) // the certificate of another authority
	for _, uri := range []string{"aws-kms://arn:aws:kms:eu-west-1:1:key/2", "http://vault/transit/keys/k", "hcvault://vault/transit/k", "hcvault://u:p@vault/transit/keys/k"} {
		wantClass(t, CheckKeyset(keyset, KEK{URI: uri}), failure.ConfigInvalid)
	}
}

// A keyset that was renewed while the service does not answer leaves the keys before it in
// use.
func TestKEKThatIsDownKeepsTheKeys(t *testing.T) {
	t.Parallel()
	v, kek := newVault(t)
	keyset, err := NewKeyset(kek)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(&fakeBlobs{}, Config{Namespace: review.NamespaceRaw, Keyset: keyset, KEK: kek, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ref := put(t, s, []byte("before"))
	rotated, err := RotateKeyset(keyset, kek)
	if err != nil {
		t.Fatal(err)
	}
	v.set("t-1", http.StatusServiceUnavailable)
	s.cfg.Keyset = rotated
	if body, err := s.Get(t.Context(), owner, ref); err != nil || string(body) != "before" {
		t.Errorf("got %q, %v", body, err)
	}
}
