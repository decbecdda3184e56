package eval

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/redaction"
)

// A LeakDetector is a pipeline that also searches for planted secrets in every
// request body that it lets pass.
type LeakDetector struct {
	*redaction.Pipeline
	cases []Case

	mu     sync.Mutex
	leaked map[[2]string]bool // case and secret
}

// NewLeakDetector returns a detector of the secrets of cases.
func NewLeakDetector(pipeline *redaction.Pipeline, cases []Case) *LeakDetector {
	return &LeakDetector{Pipeline: pipeline, cases: cases, leaked: map[[2]string]bool{}}
}

// Check implements the guard of a model endpoint.
func (d *LeakDetector) Check(body []byte) error {
	if err := d.Pipeline.Check(body); err != nil {
		return err
	}
	sent := withDecodedStrings(body)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.cases {
		for _, s := range c.Secrets {
			if strings.Contains(sent, s) {
				d.leaked[[2]string{c.Name, s}] = true
			}
		}
	}
	return nil
}

// Leaks returns the number of secrets of each case that were sent at least once.
func (d *LeakDetector) Leaks() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	leaks := map[string]int{}
	for leak := range d.leaked {
		leaks[leak[0]]++
	}
	return leaks
}

// withDecodedStrings returns a JSON body followed by its decoded strings.
func withDecodedStrings(body []byte) string {
	var out strings.Builder
	out.Write(body)
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			return out.String()
		}
		if s, ok := token.(string); ok {
			out.WriteString("\n" + s)
		}
	}
}
