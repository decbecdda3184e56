package llm

import (
	"context"
	"io"
	"iter"
	"mime/multipart"
	"net/http"

	"github.com/criticizer/criticizer/internal/failure"
)

// Upload sends lines, each a JSON value without its line end, as the file name
// of a multipart form with the given fields, and returns the answer. Neither the
// file nor the form is held in memory: lines is run through while it is sent,
// and once more if the old key has to be tried. The guard sees every line before
// it leaves; one that is blocked ends the upload, of which the endpoint then
// keeps nothing. The caller closes the body. Errors have a class.
func (e *Endpoint) Upload(ctx context.Context, path, name string, fields map[string]string, lines iter.Seq2[[]byte, error]) (io.ReadCloser, error) {
	form := &form{guard: e.wire.guard, name: name, fields: fields, lines: lines, boundary: multipart.NewWriter(io.Discard).Boundary()}
	req, err := e.request(ctx, http.MethodPost, path, form.open())
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+form.boundary)
	req.GetBody = func() (io.ReadCloser, error) { return form.open(), nil }
	body, err := e.transfer(ctx, req)
	if blocked := form.err(); blocked != nil {
		return nil, blocked
	}
	return body, err
}

// Download returns the content of a path as it comes. A connection that breaks
// shows when it is read. The caller closes it. Errors have a class.
func (e *Endpoint) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := e.request(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return e.transfer(ctx, req)
}

// transfer sends req and returns the answer's body unread.
func (e *Endpoint) transfer(ctx context.Context, req *http.Request) (io.ReadCloser, error) {
	bound, cancel := context.WithTimeout(ctx, e.cfg.TransferTimeout)
	resp, err := e.wire.keys.send(e.wire.client, req.WithContext(bound))
	if err != nil {
		defer cancel()
		if ctx.Err() == nil && bound.Err() != nil {
			return nil, failure.Errorf(failure.NetworkTimeout, "transfer of a file timed out after %s: %w", e.cfg.TransferTimeout, bound.Err())
		}
		return nil, connectionError(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel()
		defer func() { _ = resp.Body.Close() }()
		return nil, refusalOf(resp)
	}
	return &content{resp.Body, cancel, bound}, nil
}

// content is the body of an answer that is still coming in.
type content struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	bound  context.Context //nolint:containedctx // the time limit covers the reading too
}

// Read implements io.Reader; a broken connection gets its class here.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is never wrapped by a reader
		err = connectionError(c.bound, err)
	}
	return n, err
}

// Close implements io.Closer.
func (c *content) Close() error {
	defer c.cancel()
	return c.body.Close()
}
