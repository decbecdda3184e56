package llm

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/criticizer/criticizer/secret"
)

// A keyring lets two keys overlap while one is rotated out (security 9.3.5). The
// client signs with the new key; the old one is tried when that is refused.
type keyring struct {
	lg    *slog.Logger
	old   secret.Value // unset: there is no overlap
	inUse atomic.Value // string: the key that was accepted last
}

// send sends req and, if it is answered with 401, once more with the old key. A
// refused request was not carried out, so this repeats nothing.
func (k *keyring) send(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req) //nolint:gosec // G704: the operator names the endpoint; nothing of a change reaches the URL
	if err != nil || !k.old.IsSet() {
		return resp, err
	}
	if resp.StatusCode != http.StatusUnauthorized {
		k.note(req, "new")
		return resp, nil
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	if again.Body, err = req.GetBody(); err != nil {
		return nil, fmt.Errorf("repeat the model request: %w", err)
	}
	again.Header.Set("Authorization", "Bearer "+k.old.Reveal())
	resp, err = client.Do(again) //nolint:gosec // G704: as above
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		k.note(req, "none")
	default:
		k.note(req, "old")
	}
	return resp, err
}

// note logs which key is in use whenever that changes, never the key.
func (k *keyring) note(req *http.Request, name string) {
	if k.inUse.Swap(name) != name {
		k.lg.InfoContext(req.Context(), "model key in use", "key", name)
	}
}
