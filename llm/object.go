package llm

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// The errors of an answer without a JSON object to go by. They are told to the
// model.
var (
	errNoObject  = errors.New("there is no JSON object in it that is whole")
	errAmbiguous = errors.New("there is more than one JSON object in it, or one that is not whole")
	errInline    = errors.New("its JSON object has an empty list and stands within a sentence")
)

// findObject takes the JSON object that has the given list out of an answer that
// may have thinking before it and prose or a code fence around it. It does not
// look for a "likely" object: the change may hold one, and an answer may quote
// it. So an answer with two of them says nothing, nor does an empty list in the
// middle of a sentence.
func findObject(content, list string) (string, error) {
	content = withoutThinking(content)
	begins := regexp.MustCompile(`\{\s*"` + list + `"\s*:`)
	var object string
	for rest, offset := content, 0; ; {
		at := begins.FindStringIndex(rest)
		if at == nil {
			break
		}
		found, ok := firstObject(rest[at[0]:])
		if !ok || object != "" {
			return "", errAmbiguous
		}
		if inSentence(content[:offset+at[0]]) && emptyList(found, list) {
			return "", errInline
		}
		object = found
		next := at[0] + len(found)
		rest, offset = rest[next:], offset+next
	}
	if object == "" {
		return otherObject(content)
	}
	return object, nil
}

// otherObject is an answer that is one object, of whatever form: the schema
// says what it lacks.
func otherObject(content string) (string, error) {
	from := strings.Index(content, "{")
	if from < 0 {
		return "", errNoObject
	}
	object, ok := firstObject(content[from:])
	if !ok {
		return "", errNoObject
	}
	return object, nil
}

// firstObject is the JSON object that s begins with.
func firstObject(s string) (string, bool) {
	var object json.RawMessage
	if json.NewDecoder(strings.NewReader(s)).Decode(&object) != nil {
		return "", false
	}
	return string(object), true
}

// inSentence reports whether text before an object is on its line: more than
// blanks or the begin of a code fence.
func inSentence(before string) bool {
	line := before[strings.LastIndex(before, "\n")+1:]
	return strings.TrimLeft(strings.TrimSpace(line), "`json") != ""
}

func emptyList(object, list string) bool {
	var lists map[string][]json.RawMessage
	return json.Unmarshal([]byte(object), &lists) == nil && len(lists[list]) == 0
}

// endOfThinking is how models end what they think before they answer.
var endOfThinking = regexp.MustCompile(`</think(?:ing)?>|</reasoning>|<\|channel\|>final<\|message\|>`)

// withoutThinking leaves out what a model thought before it answered. What
// begins with an answer has no thinking before it, but may quote the end of some.
func withoutThinking(content string) string {
	if start := strings.TrimSpace(content); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "```") {
		return content
	}
	if at := endOfThinking.FindStringIndex(content); at != nil {
		return content[at[1]:]
	}
	return content
}
