package llm

import (
	"fmt"
	"net/http"

	"github.com/criticizer/criticizer/internal/secret"
)

// sendSigned sends req with the current key. During a rotation two keys are valid: if the
// endpoint refuses the new key, the request is repeated with the old one (security
// 9.3.5). A refused request was not executed, so the repetition is safe.
func (e *Endpoint) sendSigned(req *http.Request) (*http.Response, error) {
	e.sign(req, e.cfg.APIKey)
	resp, err := e.client.Do(req)
	if err != nil || !e.cfg.APIKeyOld.IsSet() {
		return resp, err
	}
	if resp.StatusCode != http.StatusUnauthorized {
		e.logKey(req, "new")
		return resp, nil
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil { // nil if the request has no body
		if again.Body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("repeat the model request: %w", err)
		}
	}
	e.sign(again, e.cfg.APIKeyOld)
	resp, err = e.client.Do(again)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusUnauthorized:
		e.logKey(req, "none")
	default:
		e.logKey(req, "old")
	}
	return resp, err
}

func (e *Endpoint) sign(req *http.Request, key secret.Value) {
	for name, value := range e.cfg.Headers {
		req.Header.Set(name, value)
	}
	switch {
	case !key.IsSet():
	case e.cfg.KeyHeader != "":
		req.Header.Set(e.cfg.KeyHeader, key.Reveal())
	default:
		req.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
}

// logKey logs the name of the key in use when that changes, and never the key.
func (e *Endpoint) logKey(req *http.Request, name string) {
	if e.keyInUse.Swap(name) != name {
		e.lg.InfoContext(req.Context(), "model key in use", "key", name)
	}
}
