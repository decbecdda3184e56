package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// maxAnswerBytes bounds one response; real ones have a few hundred kilobytes at
// most.
const maxAnswerBytes = 8 << 20

// transferTimeout bounds the transfer of one file.
const transferTimeout = 15 * time.Minute

// A call is what the transport knows about one request, by its context, and what it keeps of
// the response.
type call struct {
	sealed  []string       // the contents that the request may have
	fields  map[string]any // to add to the request; nil leaves a field out
	checked bool           // the body has no content, or was checked by its writer
	alive   func()         // called when something arrives

	status int
	header http.Header
	body   []byte    // of a response whose status is not 200
	answer io.Reader // of another response
}

type callKey struct{}

// refused returns the error of a response whose status is not 200.
func (c *call) refused() error {
	switch {
	case c.status == 0 || c.status == http.StatusOK:
		return nil
	case c.status >= 300 && c.status < 400:
		return failure.Errorf(failure.ConfigInvalid, "model endpoint answered with a redirect (%d), which is not followed: set the base URL to the redirect's target", c.status)
	}
	return classify(c.status, c.body, c.header)
}

// broken returns the error of a request without an answer, or with a part of one. It does not
// wrap err, whose text may quote the response.
func broken(err error) error {
	classified, known := errors.AsType[*failure.Error](err)
	_, long := errors.AsType[*http.MaxBytesError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	errno, system := errors.AsType[syscall.Errno](err)
	class, network := failure.NetworkClass(err)
	if !network {
		class = failure.NetworkUnreachable
	}
	switch {
	case known:
		return classified
	case long:
		return failure.Errorf(failure.SchemaInvalid, "answer of the model endpoint is over %d bytes: check that the base URL is that of a model endpoint", maxAnswerBytes)
	case untrusted:
		return failure.Errorf(failure.ConfigInvalid, "certificate of the model endpoint is not trusted: install its authority or correct the base URL")
	case class == failure.NetworkTimeout:
		return failure.Errorf(class, "exchange with the model endpoint took too long: %w", context.DeadlineExceeded)
	case system:
		return failure.Errorf(class, "connection to the model endpoint failed: %w", errno)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure.Errorf(class, "connection to the model endpoint ended before the answer was complete")
	}
	return failure.Errorf(class, "connection to the model endpoint failed: check its name, port and protocol")
}

// A transport sends the requests of an [Endpoint], those of go-openai included.
type transport struct {
	*Endpoint
	next http.RoundTripper
}

// RoundTrip lets a request pass only if each of its contents was sealed for its call and the
// guard finds no secret in it. During a rotation two keys are valid: if the endpoint
// refuses the new one, the request is repeated with the old one (security 9.3.5). A refused
// request was not executed, so the repetition is safe.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, known := req.Context().Value(callKey{}).(*call)
	if !known {
		return nil, failure.Errorf(failure.InvariantViolated, "request to the model endpoint that is not part of a call")
	}
	if req.Body != nil && !c.checked {
		body, err := t.admit(c, req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	keys := t.cfg.APIKey.Keys()
	for i, key := range keys {
		attempt := req
		if i > 0 {
			attempt = req.Clone(req.Context())
			if req.GetBody != nil { // nil if the request has no body
				attempt.Body, _ = req.GetBody() // all of ours return no error
			}
		}
		resp, err := t.send(attempt, c, key)
		class := failure.ClassOf(c.refused())
		refused := class == failure.AuthDenied || class == failure.QuotaExhausted
		if err == nil && refused && i < len(keys)-1 {
			continue
		}
		inUse := [...]string{"new", "old"}[min(i, 1)]
		if refused {
			inUse = "none"
		}
		if err == nil && len(keys) > 1 && t.keyInUse.Swap(inUse) != inUse { // never the key itself
			t.lg.InfoContext(req.Context(), "model key in use", "key", inUse)
		}
		return resp, err
	}
	return nil, failure.Errorf(failure.InvariantViolated, "request to the model endpoint without a key") // unreachable: unset is one
}

// admit returns the body to send: what go-openai encoded, with the fields of c.
func (t *transport) admit(c *call, from io.ReadCloser) ([]byte, error) {
	body, err := io.ReadAll(from)
	_ = from.Close()
	var fields map[string]json.RawMessage // which keep the order of the schema's properties
	if err != nil || json.Unmarshal(body, &fields) != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "encode the model request: it is not a JSON object")
	}
	for name, value := range c.fields {
		delete(fields, name)
		if value != nil {
			if fields[name], err = json.Marshal(value); err != nil {
				return nil, failure.Errorf(failure.ConfigInvalid, "encode field %s of the model request: %w", name, err)
			}
		}
	}
	var messages []map[string]string
	if json.Unmarshal(fields["messages"], &messages) != nil || len(messages) == 0 {
		return nil, failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: the request has other contents than texts")
	}
	for _, m := range messages {
		if !slices.Contains(c.sealed, m["content"]) {
			return nil, failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: the request has a content that was not sealed for it")
		}
	}
	if body, err = json.Marshal(fields); err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "encode the model request: %w", err)
	}
	return body, t.check(body)
}

// check has the guard check exactly what is sent.
func (e *Endpoint) check(body []byte) error {
	if err := e.guard.Check(body); err != nil {
		return failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: %w", err)
	}
	return nil
}

// send sends req with a key and keeps the head of the response in c, and the body unless its
// status is 200.
func (t *transport) send(req *http.Request, c *call, key secret.Value) (*http.Response, error) {
	for name, value := range t.headers {
		req.Header.Set(name, value)
	}
	switch {
	case !key.IsSet():
	case t.cfg.KeyHeader != "":
		req.Header.Set(t.cfg.KeyHeader, key.Reveal())
	default:
		req.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 { // gateways answer with 201 or 206, too
		resp.StatusCode = http.StatusOK
	}
	c.status, c.header = resp.StatusCode, resp.Header
	switch {
	case resp.StatusCode != http.StatusOK:
		c.body, _ = io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswerBytes)) // without a body the status alone counts
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	case c.checked:
		resp.Body = body{resp.Body, func() {}}
	default:
		c.alive()
		resp.Body = body{http.MaxBytesReader(nil, resp.Body, maxAnswerBytes), c.alive}
		c.answer = resp.Body
	}
	return resp, nil
}

// A body is the body of a response. It calls alive at every part that arrives, and its errors
// have a class.
type body struct {
	io.ReadCloser
	alive func()
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.alive()
	if err != nil && err != io.EOF { //nolint:errorlint // readers return io.EOF unwrapped
		err = broken(err)
	}
	return n, err
}

// Call sends in as JSON, unless it is nil, and decodes the answer into out. It returns the
// header of the response. Its errors have a class and quote nothing of the endpoint's
// text but a listed code.
func (e *Endpoint) Call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	return e.call(ctx, e.cfg.Timeout, method, e.at(path), in, out)
}

// call is Call to a URL.
func (e *Endpoint) call(ctx context.Context, limit time.Duration, method, target string, in, out any) (http.Header, error) {
	var sent []byte
	if in != nil {
		var err error
		if sent, err = json.Marshal(in); err != nil {
			return nil, failure.Errorf(failure.InvariantViolated, "encode the model request: %w", err)
		}
		if err := e.check(sent); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(sent))
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.do(req, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswerBytes))
	switch {
	case err != nil:
		return nil, broken(err)
	case cutOff(data):
		return nil, broken(io.ErrUnexpectedEOF)
	case json.Unmarshal(data, out) != nil:
		return nil, malformed(resp.Header)
	}
	return resp.Header, nil
}

// Upload sends lines as the file name of a multipart form and returns the body of the response,
// which the caller closes. Each line is a JSON value without a newline. The form is encoded
// while it is sent, and again if the old key has to be tried. The guard checks every line: a
// blocked line aborts the upload, so that the endpoint stores nothing. Errors have a class.
func (e *Endpoint) Upload(ctx context.Context, path, name, purpose string, lines iter.Seq2[[]byte, error]) (io.ReadCloser, error) {
	boundary := multipart.NewWriter(io.Discard).Boundary()
	encode := func(to io.Writer) error { // its error is lost if the reader was closed
		form := multipart.NewWriter(to)
		_ = form.SetBoundary(boundary)
		_ = form.WriteField("purpose", purpose)
		file, err := form.CreateFormFile("file", name)
		for line, failed := range lines {
			if err = cmp.Or(err, failed); err == nil {
				err = e.check(line)
			}
			if err == nil {
				_, err = fmt.Fprintf(file, "%s\n", line)
			}
			if err != nil {
				return err
			}
		}
		return form.Close()
	}
	return e.transfer(ctx, http.MethodPost, path, "multipart/form-data; boundary="+boundary, func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(encode(w)) }() // ends when r is closed
		return r, nil
	})
}

// Download returns the content of a path, unread; the caller closes it. Errors, also those of
// Read, have a class.
func (e *Endpoint) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	return e.transfer(ctx, http.MethodGet, path, "", func() (io.ReadCloser, error) { return http.NoBody, nil })
}

func (e *Endpoint) transfer(ctx context.Context, method, path, contentType string, open func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	first, _ := open()
	req, err := http.NewRequestWithContext(ctx, method, e.at(path), first)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	if contentType != "" { // a download has no body
		req.Header.Set("Content-Type", contentType)
	}
	req.GetBody = open
	resp, err := e.do(req, transferTimeout)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// do sends a request whose body was checked, and returns the response if its status is 200. The
// limit covers the reading of its body, too.
func (e *Endpoint) do(req *http.Request, limit time.Duration) (*http.Response, error) {
	c := &call{checked: true}
	client := *e.http
	client.Timeout = limit
	resp, err := client.Do(req.WithContext(context.WithValue(req.Context(), callKey{}, c))) //nolint:gosec // the address is configured
	switch {
	case err != nil && req.Context().Err() != nil:
		return nil, fmt.Errorf("ask the model: %w", req.Context().Err())
	case err != nil:
		return nil, broken(err)
	case c.refused() != nil:
		_ = resp.Body.Close()
		return nil, c.refused()
	}
	return resp, nil
}
