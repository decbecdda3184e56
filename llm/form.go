package llm

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"slices"
	"sync"

	"github.com/criticizer/criticizer/internal/failure"
)

// A form is a multipart form that is written while it is read, once for every
// time it is opened, each time the same.
type form struct {
	guard    guard
	name     string
	fields   map[string]string
	lines    iter.Seq2[[]byte, error]
	boundary string

	mu   sync.Mutex
	fail error // why a writer gave up
}

// open begins a writer, which ends when the reader is closed.
func (f *form) open() io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		err := f.write(w)
		if err != nil {
			f.mu.Lock()
			f.fail = err
			f.mu.Unlock()
		}
		w.CloseWithError(err)
	}()
	return r
}

// err is why the form could not be written, nil if it could or if its reader
// went away.
func (f *form) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *form) write(to io.Writer) error {
	w := multipart.NewWriter(to)
	if err := w.SetBoundary(f.boundary); err != nil {
		return failure.Errorf(failure.InvariantViolated, "write the form of a file: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		if w.WriteField(name, f.fields[name]) != nil {
			return nil
		}
	}
	file, err := w.CreateFormFile("file", f.name)
	if err != nil {
		return nil //nolint:nilerr // the reader went away, and knows why
	}
	for line, err := range f.lines {
		if err != nil {
			return err
		}
		if err := f.guard.Check(line); err != nil {
			return failure.Errorf(failure.RedactionBlocked, "send to the model endpoint: %w", err)
		}
		if _, err := fmt.Fprintf(file, "%s\n", line); err != nil {
			return nil //nolint:nilerr // as above
		}
	}
	_ = w.Close() // as above
	return nil
}
