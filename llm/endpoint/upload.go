package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// Upload sends lines as the file name of a multipart form with the given fields
// and returns the response body, which the caller closes. Each line is a JSON
// value without a newline. The form is streamed: lines is iterated while it is
// sent, and again if the old key has to be tried. The guard checks every line;
// a blocked line aborts the upload, so that the endpoint stores nothing. Errors
// have a class.
func (e *Endpoint) Upload(ctx context.Context, path, name string, fields map[string]string, lines iter.Seq2[[]byte, error]) (io.ReadCloser, error) {
	f := &form{check: e.check, name: name, fields: fields, lines: lines, boundary: multipart.NewWriter(io.Discard).Boundary()}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.at(path), f.open())
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+f.boundary)
	req.GetBody = func() (io.ReadCloser, error) { return f.open(), nil }
	return e.transfer(ctx, req)
}

// Download returns the content of a path, unread; the caller closes it. A broken
// connection is an error of Read. Errors have a class.
func (e *Endpoint) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.at(path), http.NoBody)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "create a request to the model endpoint: invalid path")
	}
	return e.transfer(ctx, req)
}

// transfer sends req and returns the response body unread.
func (e *Endpoint) transfer(ctx context.Context, req *http.Request) (io.ReadCloser, error) {
	bound, cancel := context.WithTimeout(ctx, e.cfg.TransferTimeout)
	body, _, err := e.do(req.WithContext(bound))
	if err != nil {
		cancel()
		return nil, timed(ctx, e.cfg.TransferTimeout, err)
	}
	return &download{body, cancel, bound}, nil
}

// timed names the limit in the error of an exchange that did not end because of ctx.
func timed(ctx context.Context, limit time.Duration, err error) error {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("ask the model: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Errorf(failure.NetworkTimeout, "exchange with the model endpoint took longer than %s: %w", limit, context.DeadlineExceeded)
	}
	return err
}

// A download is a response body that is still being received.
type download struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	bound  context.Context //nolint:containedctx // the timeout covers the reading too
}

// Read implements io.Reader. Its errors have a class.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // readers return io.EOF unwrapped
		if d.bound.Err() != nil {
			return n, d.bound.Err()
		}
		err = (&call{}).broken(err)
	}
	return n, err
}

// Close implements io.Closer.
func (d *download) Close() error {
	defer d.cancel()
	return d.body.Close()
}

// A form is a multipart form that is encoded while it is read.
type form struct {
	check    func(line []byte) error
	name     string
	fields   map[string]string
	lines    iter.Seq2[[]byte, error]
	boundary string
}

// open returns the encoded form. Its goroutine ends when the reader is closed.
func (f *form) open() io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(f.encode(w)) }()
	return r
}

// encode returns nil if the reader was closed: the cause is then an error of the
// request.
func (f *form) encode(to io.Writer) error {
	w := multipart.NewWriter(to)
	if err := w.SetBoundary(f.boundary); err != nil {
		return failure.Errorf(failure.InvariantViolated, "encode the form of a file: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		if w.WriteField(name, f.fields[name]) != nil {
			return nil
		}
	}
	file, err := w.CreateFormFile("file", f.name)
	if err != nil {
		return nil //nolint:nilerr // the reader was closed
	}
	for line, err := range f.lines {
		if err != nil {
			return err
		}
		if err := f.check(line); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(file, "%s\n", line); err != nil {
			return nil //nolint:nilerr // the reader was closed
		}
	}
	_ = w.Close() // fails only if the reader was closed
	return nil
}
