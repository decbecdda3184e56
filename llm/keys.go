package llm

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// sendSigned sends req with the current key. During a rotation two keys are valid: if the
// endpoint refuses the new key, the request is repeated with the old one (security
// 9.3.5). A refused request was not executed, so the repetition is safe.
func (e *Endpoint) sendSigned(req *http.Request) (*http.Response, error) {
	resp, err := e.sendWith(req, e.cfg.APIKey)
	if !e.cfg.APIKeyOld.IsSet() {
		return resp, err
	}
	key := "new"
	if failure.ClassOf(err) == failure.AuthDenied {
		again := req.Clone(req.Context())
		if req.GetBody != nil { // nil if the request has no body
			body, failed := req.GetBody()
			if failed != nil {
				return nil, fmt.Errorf("repeat the model request: %w", failed)
			}
			again.Body = body
		}
		if resp, err = e.sendWith(again, e.cfg.APIKeyOld); failure.ClassOf(err) == failure.AuthDenied {
			key = "none"
		} else {
			key = "old"
		}
	}
	if _, answered := errors.AsType[apiError](err); err == nil || answered {
		e.logKey(req, key)
	}
	return resp, err
}

// sendWith sends req with a key. It returns a response of status 200, or an error with a class.
func (e *Endpoint) sendWith(req *http.Request, key secret.Value) (*http.Response, error) {
	e.sign(req, key)
	resp, err := e.client.Do(req)
	switch {
	case err != nil:
		return nil, connectionError(req.Context(), err)
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, failure.Errorf(failure.ConfigInvalid, "model endpoint answered with a redirect (%d), which is not followed: set the base URL to the redirect's target", resp.StatusCode)
	}
	return nil, responseError(resp)
}

func (e *Endpoint) sign(req *http.Request, key secret.Value) {
	for name, value := range e.headers {
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
