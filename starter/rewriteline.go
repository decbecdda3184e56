package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/rewrite"
)

// maxMessage bounds a message: a complaint is some sentences.
const maxMessage = 64 << 10

// A message is what a sender wrote and what its recipient prefers.
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
	return nil
}

// A jobLine is one line of a file of jobs.
type jobLine struct {
	rewrite.Order
	message
	number int // of the line, from 1
}

// readLines reads the jobs of a file. One that is wrong refuses the whole file;
// the error names every wrong line, and quotes none.
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

func parseLine(text []byte) (jobLine, error) {
	var line jobLine
	fields := map[string]json.RawMessage{}
	if err := strictly(text, &fields); err != nil {
		return line, err
	}
	if err := dropInitial(fields); err != nil {
		return line, err
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return line, err
	}
	if err := strictly(rest, &line); err != nil {
		return line, err
	}
	if err := line.Order.Validate(); err != nil {
		return line, err
	}
	return line, line.message.validate()
}

// initial is what the fields that the queue fills in are at first: a whole job
// record may be given, but not one that pretends to have been worked on.
var initial = map[string]string{
	"status": `"queued"`, "attempt_count": "0",
	"created_at": "null", "updated_at": "null", "claimed_at": "null", "claimed_by": "null", "last_error": "null", "last_error_at": "null",
}

func dropInitial(fields map[string]json.RawMessage) error {
	for name, want := range initial {
		if got, ok := fields[name]; ok && string(got) != want {
			return fmt.Errorf("%s is the queue's to set: leave it out", name)
		}
		delete(fields, name)
	}
	return nil
}

// strictly decodes one JSON value that has no unknown fields. The error says
// what is wrong where, and quotes no values.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errors.New("there is something after the JSON object")
		}
		return nil
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("this is no JSON object")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("there is no field %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return errors.New("a value is malformed")
}
