package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The errors of an answer without exactly one JSON object. They are shown to the
// model.
var (
	errNoObject  = errors.New("it has no complete JSON object")
	errAmbiguous = errors.New("it has more than one JSON object")
	errTooMany   = fmt.Errorf("its list has more than %d elements", maxItems)
)

// maxItems bounds the list of an answer.
const maxItems = 1_000

// An object is the JSON object of an answer, read as far as it is there.
type object struct {
	codes []string
	items []json.RawMessage // of the list for the task
	whole bool
	end   int // in the text
}

// begins matches the beginning of an answer's object.
var begins = regexp.MustCompile(`\{\s*"(?:codes|findings|verdicts)"\s*:`)

// findObject reads the JSON object in an answer that may have thinking before it and
// prose or a code fence around it. It does not choose among objects: the change may
// hold an object, and the answer may quote it.
func findObject(content, list string) (object, error) {
	content = afterThinking(content)
	at := begins.FindStringIndex(content)
	if at == nil {
		return object{}, errNoObject
	}
	content = content[at[0]:]
	o, err := readObject(content, list)
	if err == nil && o.whole && begins.MatchString(content[o.end:]) {
		return o, errAmbiguous
	}
	return o, err
}

// readObject reads the object at the beginning of text. A field that is there twice is
// an error, because readers differ in which one counts.
func readObject(text, list string) (o object, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	_, _ = d.Token() // the brace that begins matches
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return o, nil //nolint:nilerr // an object that is not whole is no error here
		}
		if seen[name] {
			return o, errors.New("it has a field twice")
		}
		seen[name] = true
		whole := false
		switch name {
		case "codes":
			o.codes, whole = elements[string](d)
		case list:
			o.items, whole = elements[json.RawMessage](d)
		case listFindings, listVerdicts:
			_, whole = elements[json.RawMessage](d)
		default:
			return o, errors.New("it has a field that was not asked for")
		}
		if len(o.items) > maxItems {
			return o, errTooMany
		}
		if !whole {
			return o, nil
		}
	}
	_, err = d.Token()
	o.whole, o.end = err == nil, int(d.InputOffset())
	if o.whole && !seen[list] {
		return o, fmt.Errorf("it has no list %q", list)
	}
	return o, nil
}

// elements decodes the array at d up to one element over the limit; whole is false if
// the text ends within it, or if it is not an array of T.
func elements[T any](d *json.Decoder) (out []T, whole bool) {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, false
	}
	for d.More() && len(out) <= maxItems {
		var v T
		if d.Decode(&v) != nil {
			return out, false
		}
		out = append(out, v)
	}
	t, err := d.Token()
	return out, err == nil && t == json.Delim(']')
}

// endOfThinking matches the marks with which models end their thinking.
var endOfThinking = regexp.MustCompile(`(?i)</(?:\w{1,12}:)?(?:think(?:ing)?|thought|reasoning|reflection|analysis)>|\[/THINK\]|<\|channel\|>final(?: <\|constrain\|>\w+)?<\|message\|>|<\|end_of_thought\|>|◁/think▷`)

// afterThinking returns content without the model's thinking. An answer that
// begins with an object has no thinking before it, but may quote such a mark.
func afterThinking(content string) string {
	if start := strings.TrimSpace(content); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "```") {
		return content
	}
	if at := endOfThinking.FindStringIndex(content); at != nil {
		return content[at[1]:]
	}
	return content
}
