package review

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// MaxWhole is the largest text in bytes that is handed over whole.
const MaxWhole = 16 << 20

// A Whole is the whole text of a file, compressed: a change holds many of them, and
// only one is read at a time.
type Whole []byte

// compressors are reused: each has buffers of about 1 MB.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for an unknown level only
	return w
}}

// Compress returns text as a Whole. It is nil for a text of more than MaxWhole bytes.
func Compress(text string) Whole {
	if len(text) > MaxWhole {
		return nil
	}
	var out bytes.Buffer
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&out)
	_, _ = io.WriteString(w, text) // a Buffer does not fail
	_ = w.Close()
	return out.Bytes()
}

// Text returns the text.
func (w Whole) Text() (string, error) {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(w)), MaxWhole+1))
	if err != nil {
		return "", fmt.Errorf("decompress text: %w", err)
	}
	if len(text) > MaxWhole {
		return "", fmt.Errorf("decompress text: it has more than %d bytes", MaxWhole)
	}
	return string(text), nil
}
