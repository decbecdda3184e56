package artifact

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// fakeVault answers as the transit engine does that has the key criticizer. Its ciphertext
// is authenticated, as that of a key of type aes256-gcm96 is.
type fakeVault struct {
	mu     sync.Mutex
	key    cipher.AEAD
	token  string
	status int // if set, of every answer
	calls  map[string]int
}

func (v *fakeVault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls[r.URL.Path]++
	status, data := v.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusOK {
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{"an error"}})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// answer returns what the documentation and the source of the engine say. In particular,
// a key that does not exist is an invalid request, not one for a path that is unknown.
func (v *fakeVault) answer(r *http.Request) (status int, data map[string]any) {
	var asked struct {
		Plaintext  []byte
		Ciphertext string
		Associated []byte `json:"associated_data"`
	}
	operation, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/transit/"), "/")
	switch {
	case v.status != 0:
		return v.status, nil
	case r.Header.Get("X-Vault-Token") != v.token:
		return http.StatusForbidden, nil
	case !strings.HasPrefix(r.URL.Path, "/v1/transit/"), operation != "encrypt" && operation != "decrypt":
		return http.StatusNotFound, nil
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		return http.StatusMethodNotAllowed, nil
	case json.NewDecoder(r.Body).Decode(&asked) != nil, key != "criticizer":
		return http.StatusBadRequest, nil
	case operation == "encrypt":
		nonce := make([]byte, v.key.NonceSize())
		_, _ = rand.Read(nonce)
		sealed := v.key.Seal(nonce, nonce, asked.Plaintext, asked.Associated)
		return http.StatusOK, map[string]any{"ciphertext": "vault:v1:" + base64.StdEncoding.EncodeToString(sealed), "key_version": 1}
	}
	text, ours := strings.CutPrefix(asked.Ciphertext, "vault:v1:")
	sealed, err := base64.StdEncoding.DecodeString(text)
	if !ours || err != nil || len(sealed) < v.key.NonceSize() {
		return http.StatusBadRequest, nil
	}
	plain, err := v.key.Open(nil, sealed[:v.key.NonceSize()], sealed[v.key.NonceSize():], asked.Associated)
	if err != nil {
		return http.StatusBadRequest, nil
	}
	return http.StatusOK, map[string]any{"plaintext": plain}
}

func (v *fakeVault) set(token string, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.token, v.status = token, status
}

func newVault(t *testing.T) (*fakeVault, KEK) {
	t.Helper()
	block, err := aes.NewCipher(make([]byte, 32))
	testkit.NoError(t, err)
	key, err := cipher.NewGCM(block)
	testkit.NoError(t, err)
	v := &fakeVault{token: "t-1", calls: map[string]int{}, key: key}
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
	testkit.NoError(t, err)
	var stored struct {
		EncryptedKeyset []byte
		Key             []any
	}
	if err := json.Unmarshal([]byte(keyset.Reveal()), &stored); err != nil || len(stored.EncryptedKeyset) == 0 || stored.Key != nil {
		t.Fatalf("the keyset is not encrypted: %v", err)
	}
	s, err := New(&fakeBlobs{}, Config{Namespace: review.NamespaceRaw, Keyset: keyset, KEK: kek, TTL: time.Hour})
	testkit.NoError(t, err)
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
	testkit.NoError(t, err)
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
	testkit.NoError(t, err)
	s, err := New(&fakeBlobs{}, Config{Namespace: review.NamespaceRaw, Keyset: keyset, KEK: kek, TTL: time.Hour})
	testkit.NoError(t, err)
	ref := put(t, s, []byte("before"))
	rotated, err := RotateKeyset(keyset, kek)
	testkit.NoError(t, err)
	v.set("t-1", http.StatusServiceUnavailable)
	s.cfg.Keyset = rotated
	if body, err := s.Get(t.Context(), owner, ref); err != nil || string(body) != "before" {
		t.Errorf("got %q, %v", body, err)
	}
}

// The fake of the transit engine answers as the engine's documentation and source say: a
// test with a fake that accepts more proves nothing.
func TestFakeVaultIsTheTransitEngine(t *testing.T) {
	t.Parallel()
	v, kek := newVault(t)
	host, _, _ := strings.Cut(strings.TrimPrefix(kek.URI, "hcvault://"), "/")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: kek.roots, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path, token, body string) (status int, data map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+host+path, strings.NewReader(body))
		testkit.NoError(t, err)
		req.Header.Set("X-Vault-Token", token)
		resp, err := client.Do(req)
		testkit.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		var answer struct {
			Data   map[string]any
			Errors []string
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || (resp.StatusCode == http.StatusOK) != (len(answer.Errors) == 0) {
			t.Errorf("%s %s: status %d, errors %q, %v", method, path, resp.StatusCode, answer.Errors, err)
		}
		return resp.StatusCode, answer.Data
	}
	const encrypt, decrypt = "/v1/transit/encrypt/criticizer", "/v1/transit/decrypt/criticizer"
	seal := func() string {
		_, data := ask("POST", encrypt, "t-1", `{"plaintext": "a2V5", "associated_data": "YQ=="}`)
		return fmt.Sprint(data["ciphertext"])
	}
	first, second := seal(), seal()
	if first == second || len(first) < 40 || !strings.HasPrefix(first, "vault:v1:") || strings.Contains(first, "a2V5") {
		t.Fatalf("two encryptions of one text: %s and %s", first, second)
	}
	damaged := first[:20] + map[bool]string{true: "A", false: "B"}[first[20] == 'B'] + first[21:]
	for name, tc := range map[string]struct {
		method, path, token, body string
		want                      int
	}{
		"its own ciphertext":      {"POST", decrypt, "t-1", `{"ciphertext": "` + first + `", "associated_data": "YQ=="}`, 200},
		"by PUT":                  {"PUT", decrypt, "t-1", `{"ciphertext": "` + first + `", "associated_data": "YQ=="}`, 200},
		"other associated data":   {"POST", decrypt, "t-1", `{"ciphertext": "` + first + `", "associated_data": "Yg=="}`, 400},
		"no associated data":      {"POST", decrypt, "t-1", `{"ciphertext": "` + first + `"}`, 400},
		"a damaged ciphertext":    {"POST", decrypt, "t-1", `{"ciphertext": "` + damaged + `", "associated_data": "YQ=="}`, 400},
		"no ciphertext":           {"POST", decrypt, "t-1", `{}`, 400},
		"a text of another kind":  {"POST", decrypt, "t-1", `{"ciphertext": "a2V5"}`, 400},
		"not base64":              {"POST", encrypt, "t-1", `{"plaintext": "key!"}`, 400},
		"not JSON":                {"POST", encrypt, "t-1", `key`, 400},
		"a key it lacks":          {"POST", "/v1/transit/decrypt/another", "t-1", `{"ciphertext": "` + first + `"}`, 400},
		"an engine it lacks":      {"POST", "/v1/transits/decrypt/criticizer", "t-1", `{}`, 404},
		"another token":           {"POST", decrypt, "t-2", `{"ciphertext": "` + first + `", "associated_data": "YQ=="}`, 403},
		"no token":                {"POST", decrypt, "", `{}`, 403},
		"a method it lacks":       {"GET", decrypt, "t-1", ``, 405},
		"a deletion of something": {"DELETE", encrypt, "t-1", ``, 405},
	} {
		status, data := ask(tc.method, tc.path, tc.token, tc.body)
		if status != tc.want || (status == 200) != (data["plaintext"] == "a2V5") {
			t.Errorf("%s: status %d with %v, want %d", name, status, data, tc.want)
		}
	}
	v.set("t-1", http.StatusServiceUnavailable) // sealed
	if status, _ := ask("POST", decrypt, "t-1", `{}`); status != http.StatusServiceUnavailable {
		t.Errorf("a sealed engine answers %d", status)
	}
}

// A keyset file that was altered, or encrypted for another purpose, is not used.
func TestDamagedKeysetIsRefused(t *testing.T) {
	t.Parallel()
	_, kek := newVault(t)
	keyset, err := NewKeyset(kek)
	testkit.NoError(t, err)
	var stored struct{ EncryptedKeyset []byte }
	testkit.NoError(t, json.Unmarshal([]byte(keyset.Reveal()), &stored))
	for i := len("vault:v1:") + 4; i < len(stored.EncryptedKeyset)-4; i += 11 {
		altered := bytes.Clone(stored.EncryptedKeyset)
		if altered[i]++; altered[i] == ':' || altered[i] == '{' || altered[i] == '[' || altered[i] == ',' {
			altered[i] = 'a'
		}
		body, err := json.Marshal(map[string]any{"encryptedKeyset": altered})
		testkit.NoError(t, err)
		wantClass(t, CheckKeyset(secret.New(string(body)), kek), failure.ConfigInvalid)
	}
}
