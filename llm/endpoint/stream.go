package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
)

// events are an answer that is read event by event. An answer that is not streamed is one event.
type events struct {
	*Answer
	header http.Header
	in     *bufio.Reader
	named  string // the name of the next event
	data   []byte // the lines of an event that began, and is not whole
	begun  bool
	whole  bool // the answer is one JSON value
	ended  bool // a stream had the mark of its end
	cut    bool // it ended within an event, or within its only one
}

// byteOrderMark may be before the first event.
const byteOrderMark = "\ufeff"

// receive reads an answer in any shape, with at most so many events; the rest of a longer one is
// left to the server, which ends it with the connection. go-openai's reader is not used: it returns
// the text of an error, and limits how many comments a stream may have.
func (a *Answer) receive(body io.Reader, h http.Header, most int) error {
	a.RequestID = requestID(h)
	r := events{Answer: a, header: h, in: bufio.NewReaderSize(body, 64<<10)}
	if mark, _ := r.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = r.in.Discard(len(mark))
	}
	for last := false; !last && !r.ended && a.Parts <= most; {
		line, err := r.in.ReadBytes('\n')
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return err
		}
		if err := r.line(bytes.TrimSpace(line), last); err != nil {
			return err
		}
	}
	switch {
	case a.Parts > most:
		a.Finish = "length"
	case a.Parts > 0 || r.cut: // a proxy may send the mark of the end after a failure
		a.Early = a.Finish == "" && !r.whole
	case !r.ended:
		return malformed(h)
	}
	return nil
}

// line reads one line of the answer; last is set if nothing follows it.
func (r *events) line(line []byte, last bool) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch field := string(name); {
	case len(line) == 0 && r.data != nil:
		return r.join(last)
	case field == "" || field == "id" || field == "retry": // of a blank line or a comment, too
	case field == "event":
		r.named, r.begun = string(value), true
	case field == "error":
		return r.event(value, true)
	case field == "data" && string(value) == "[DONE]":
		r.ended, r.begun = true, true
		if json.Valid(r.data) { // it comes in place of the blank line
			return r.join(last)
		}
	case field == "data" && r.named == "error":
		return r.event(value, true)
	case field == "data":
		isFirst := r.data == nil
		r.data, r.begun = append(r.data, value...), true
		switch {
		case last || isFirst && json.Valid(value): // some gateways send no blank line
			return r.join(last)
		case isFirst && !bytes.HasPrefix(value, []byte("{")): // such as a comment that a gateway took for data
			r.data = nil
		}
	case r.begun && line[0] == '{': // an event without its mark
		return r.event(line, false)
	case !r.begun:
		rest, err := io.ReadAll(r.in)
		if err != nil {
			return err
		}
		whole := bytes.TrimSpace(slices.Concat(line, []byte("\n"), rest))
		if r.cut = cutOff(whole); r.cut {
			return nil
		}
		if r.whole = json.Valid(whole); !r.whole {
			return malformed(r.header)
		}
		return r.event(whole, false)
	}
	return nil
}

// join adds the event of the lines of data so far. The lines of an event are checked once, at
// its end: a check after each of them takes the square of their length.
func (r *events) join(last bool) error {
	data := r.data
	r.data = nil
	switch {
	case json.Valid(data):
		return r.event(data, false)
	case !last:
		return malformed(r.header)
	}
	r.cut = true
	return nil
}

// event adds one event. The text of an error becomes the value of a field.
func (r *events) event(data []byte, isError bool) error {
	r.begun, r.named = true, ""
	var object map[string]json.RawMessage
	if isObject := json.Unmarshal(data, &object) == nil; isError && (!isObject || object["error"] == nil) {
		if !json.Valid(data) {
			data, _ = json.Marshal(string(data))
		}
		data = slices.Concat([]byte(`{"error":`), data, []byte("}"))
	}
	return r.add(data, r.header)
}

// cutOff reports whether data is the beginning of a JSON object.
func cutOff(data []byte) bool {
	var object json.RawMessage
	return bytes.HasPrefix(data, []byte("{")) && errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&object), io.ErrUnexpectedEOF)
}
