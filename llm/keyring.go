package llm

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/secret"
)

// A keyring signs each request with the current key. During a rotation two keys
// are valid: if the endpoint refuses the new key, the old one is tried
// (security 9.3.5).
type keyring struct {
	lg     *slog.Logger
	key    secret.Value // unset if the endpoint needs none
	old    secret.Value // unset outside of a rotation
	header string       // header of the key; "" sends it as a bearer token
	// headers are sent beside the key
	headers map[string]string
	inUse   atomic.Value // string: "new", "old" or "none", as last logged
}

// send sends req and, if the response is 401, repeats it with the old key. A
// refused request was not executed, so the repetition is safe.
func (k *keyring) send(client *http.Client, req *http.Request) (*http.Response, error) {
	k.sign(req, k.key)
	resp, err := client.Do(req)
	if err != nil || !k.old.IsSet() {
		return resp, err
	}
	if resp.StatusCode != http.StatusUnauthorized {
		k.log(req, "new")
		return resp, nil
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil { // nil if the request has no body
		if again.Body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("repeat the model request: %w", err)
		}
	}
	k.sign(again, k.old)
	resp, err = client.Do(again)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		k.log(req, "none")
	default:
		k.log(req, "old")
	}
	return resp, err
}

func (k *keyring) sign(req *http.Request, key secret.Value) {
	for name, value := range k.headers {
		req.Header.Set(name, value)
	}
	switch {
	case !key.IsSet():
	case k.header != "":
		req.Header.Set(k.header, key.Reveal())
	default:
		req.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
}

// log logs the name of the key in use when it changes, never the key itself.
func (k *keyring) log(req *http.Request, name string) {
	if k.inUse.Swap(name) != name {
		k.lg.InfoContext(req.Context(), "model key in use", "key", name)
	}
}
