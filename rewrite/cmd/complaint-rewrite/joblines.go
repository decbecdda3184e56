package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/rewrite"
)

// maxMessage is the size limit of a message in bytes: a complaint has a few
// sentences.
const maxMessage = 64 << 10

// preferenceName matches the names that the worker accepts: a name is not redacted.
var preferenceName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// A message is the text of a sender with the preferences of its recipient.
type message struct {
	Text        string            `json:"text"`
	Preferences map[string]string `json:"preferences"`
}

func (m message) validate() error {
	switch {
	case strings.TrimSpace(m.Text) == "":
		return errors.New("text is empty: write the message")
	case len(m.Text) > maxMessage:
		return fmt.Errorf("text has %d bytes: want at most %d", len(m.Text), maxMessage)
	case !utf8.ValidString(m.Text):
		return errors.New("text is not UTF-8")
	}
	for name := range m.Preferences {
		if !preferenceName.MatchString(name) {
			return errors.New("the name of a preference has other characters than letters, digits and _.-, or more than 64")
		}
	}
	return nil
}

// A jobLine is one line of a job file.
type jobLine struct {
	rewrite.Order
	message
	number int // line number, from 1
}

// readLines reads a job file. The error names every invalid line and quotes
// none: a line holds a user's message.
func readLines(file string) ([]jobLine, error) {
	body, err := readFile(file)
	if err != nil {
		return nil, err
	}
	var lines []jobLine
	var problems []error
	number := 0
	for text := range bytes.Lines(body) {
		number++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		line, err := parseLine(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s, line %d: %w", file, number, err))
			continue
		}
		line.number = number
		lines = append(lines, line)
	}
	if len(lines)+len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s holds no jobs", file))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("nothing was enqueued:\n%w", errors.Join(problems...))
	}
	return lines, nil
}

// A record is a line that may have all fields of a job, but only as no worker has changed them.
type record struct {
	jobLine
	Status       *string `json:"status"`
	AttemptCount *int    `json:"attempt_count"`
	CreatedAt    *string `json:"created_at"`
	UpdatedAt    *string `json:"updated_at"`
	ClaimedAt    *string `json:"claimed_at"`
	ClaimedBy    *string `json:"claimed_by"`
	LastError    *string `json:"last_error"`
	LastErrorAt  *string `json:"last_error_at"`
}

func parseLine(text []byte) (jobLine, error) {
	var r record
	if err := decodeStrictly(text, &r); err != nil {
		return r.jobLine, err
	}
	for name, changed := range map[string]bool{
		"status": r.Status != nil && *r.Status != string(rewrite.Queued), "attempt_count": r.AttemptCount != nil && *r.AttemptCount != 0,
		"created_at": r.CreatedAt != nil, "updated_at": r.UpdatedAt != nil, "claimed_at": r.ClaimedAt != nil, "claimed_by": r.ClaimedBy != nil,
		"last_error": r.LastError != nil, "last_error_at": r.LastErrorAt != nil,
	} {
		if changed {
			return r.jobLine, fmt.Errorf("%s is set by the queue: delete it", name)
		}
	}
	return r.jobLine, cmp.Or(r.Order.Validate(), r.message.validate())
}

// decodeStrictly decodes one JSON value without unknown fields. Its errors quote
// no values.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	wrongType, isType := errors.AsType[*json.UnmarshalTypeError](err)
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errors.New("data follows the JSON object")
		}
		return nil
	case isType:
		return fmt.Errorf("%s is a JSON %s", wrongType.Field, wrongType.Value)
	case isSyntax, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("not a JSON object")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("unknown field %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return errors.New("a value is malformed")
}
