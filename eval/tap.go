package eval

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/redaction"
)

// A Tap is a pipeline that also looks for planted secrets in every request body
// it lets pass. It is the guard of whoever sends them.
type Tap struct {
	*redaction.Pipeline
	planted map[string][]string // by case

	mu     sync.Mutex
	leaked map[string]map[string]bool // case, secret
}

// NewTap looks for the secrets of cases.
func NewTap(pipeline *redaction.Pipeline, cases []Case) *Tap {
	t := &Tap{Pipeline: pipeline, planted: map[string][]string{}, leaked: map[string]map[string]bool{}}
	for _, c := range cases {
		if len(c.Secrets) > 0 {
			t.planted[c.Name] = c.Secrets
		}
	}
	return t
}

// Check is that of the pipeline.
func (t *Tap) Check(body []byte) error {
	if err := t.Pipeline.Check(body); err != nil {
		return err
	}
	sent := texts(body)
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, secrets := range t.planted {
		for _, s := range secrets {
			if !strings.Contains(sent, s) {
				continue
			}
			if t.leaked[name] == nil {
				t.leaked[name] = map[string]bool{}
			}
			t.leaked[name][s] = true
		}
	}
	return nil
}

// Leaks counts, by case, the planted secrets that were sent at least once.
func (t *Tap) Leaks() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	leaks := map[string]int{}
	for name, secrets := range t.leaked {
		leaks[name] = len(secrets)
	}
	return leaks
}

// texts are the bytes of a JSON body as they are, and its strings decoded.
func texts(body []byte) string {
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
