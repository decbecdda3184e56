package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A Recording holds what a model answered to the reviews of an evaluation, by the digests
// of the questions. Replayed, it gives the same findings without a model, as long as
// cases, prompts and settings ask the same questions.
type Recording struct {
	// RedactionKey keys the placeholders, which are part of the questions.
	RedactionKey string `json:"redaction_key"`
	// Reviews are by case and run.
	Reviews map[string]*Recorded `json:"reviews"`

	replayed bool
}

// Recorded is one recorded review.
type Recorded struct {
	// Answers are null for a question without a usable answer.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	Usage   review.Usage               `json:"usage"`
	Failure failure.Class              `json:"failure,omitempty"`
}

// NewRecording returns an empty recording, to be filled by an [Evaluator].
func NewRecording(redactionKey string) *Recording {
	return &Recording{RedactionKey: redactionKey, Reviews: map[string]*Recorded{}}
}

// The files in the directory of a recording.
const (
	recordingFile = "recording.json"
	reportFile    = "report.json"
)

// ReadRecording reads a recording, to be replayed.
func ReadRecording(dir string) (*Recording, error) {
	r := &Recording{replayed: true}
	return r, readJSON(filepath.Join(dir, recordingFile), r)
}

// Write writes the recording and its report into a directory, which it creates.
func (r *Recording) Write(dir string, report Report) error {
	err := os.MkdirAll(dir, 0o700)
	for name, content := range map[string]any{recordingFile: r, reportFile: report} {
		text, marshalErr := json.MarshalIndent(content, "", " ")
		if err = errors.Join(err, marshalErr); err == nil {
			err = os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o600)
		}
	}
	return err
}

// ReadReport reads the report of a recording, or the JSON file of one.
func ReadReport(path string) (r Report, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, reportFile)
	}
	return r, readJSON(path, &r)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}

// attempts is the state that the attempts at one review share: answer cache and usage. A
// replayed review has both from the recording, and makes no call.
type attempts struct {
	replayed bool
	mu       sync.Mutex
	Recorded
	missing bool // a question has no recorded answer
}

func (r *Recording) attempts(review string) (*attempts, error) {
	a := &attempts{}
	if a.replayed = r != nil && r.replayed; a.replayed {
		recorded := r.Reviews[review]
		if recorded == nil {
			return nil, failure.Errorf(failure.NotFound, "the recording does not have this review")
		}
		a.Recorded = *recorded
	}
	if a.Answers == nil {
		a.Answers = map[string]json.RawMessage{}
	}
	return a, nil
}

// add records a finished review. A replay only reads: other reviews look theirs up meanwhile.
func (r *Recording) add(review string, a *attempts) {
	if !r.replayed {
		r.Reviews[review] = &a.Recorded
	}
}

func (a *attempts) options() review.Options {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := review.Options{Cache: a, Budget: a}
	if !a.replayed {
		o.Spent = a.Usage.Tokens()
	}
	return o
}

// Get implements [review.AnswerCache].
func (a *attempts) Get(_ context.Context, key string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, asked := a.Answers[key]
	switch {
	case string(answer) == "null":
		return nil, nil
	case !asked && a.replayed:
		a.missing = true
	case !asked:
		a.Answers[key] = json.RawMessage("null") // until there is one
	}
	return answer, nil
}

// Put implements [review.AnswerCache].
func (a *attempts) Put(_ context.Context, key string, answer []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Answers[key] = answer
	return nil
}

// Reserve implements [review.TokenBudget]. It grants everything, but nothing to a replay:
// a part whose recorded answer was unusable stays without one.
func (a *attempts) Reserve(_ context.Context, tokens int) (review.Grant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.replayed && a.missing {
		return review.Grant{}, failure.Errorf(failure.NotFound, "the recording has no answer to a question: cases, prompts or settings have changed")
	}
	return review.Grant{Tokens: tokens, Refused: a.replayed}, nil
}

// Settle implements [review.TokenBudget].
func (a *attempts) Settle(_ context.Context, _ review.Grant, used review.Usage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Usage = a.Usage.Add(used)
	return nil
}
