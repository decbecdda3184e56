package llm

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/criticizer/criticizer/internal/secret"
)

// A keyring signs each request with the key as it is then. It lets two keys
// overlap while one is rotated out: the old one is tried where the new one is
// refused (security 9.3.5).
type keyring struct {
	lg  *slog.Logger
	key secret.Value // unset: the endpoint wants none
	old secret.Value // unset: there is no overlap
	// header takes a key as it is. Default "": a key goes as a bearer token.
	header string
	inUse  atomic.Value // string: the key that was accepted last
}

// send sends req and, if it is answered with 401, once more with the old key. A
// refused request was not carried out, so this repeats nothing.
func (k *keyring) send(client *http.Client, req *http.Request) (*http.Response, error) {
	if k.key.IsSet() {
		k.sign(req, k.key)
	}
	resp, err := client.Do(req)
	if err != nil || !k.old.IsSet() {
		return resp, err
	}
	if resp.StatusCode != http.StatusUnauthorized {
		k.note(req, "new")
		return resp, nil
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil { // nil: it has no body
		if again.Body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("repeat the model request: %w", err)
		}
	}
	k.sign(again, k.old)
	resp, err = client.Do(again)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		k.note(req, "none")
	default:
		k.note(req, "old")
	}
	return resp, err
}

// sign puts key into req.
func (k *keyring) sign(req *http.Request, key secret.Value) {
	if k.header != "" {
		req.Header.Set(k.header, key.Reveal())
		return
	}
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
}

// note logs which key is in use whenever that changes, never the key.
func (k *keyring) note(req *http.Request, name string) {
	if k.inUse.Swap(name) != name {
		k.lg.InfoContext(req.Context(), "model key in use", "key", name)
	}
}
