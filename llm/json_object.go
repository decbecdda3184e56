package llm

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// The errors of an answer without exactly one JSON object. They are shown to the
// model.
var (
	errNoObject  = errors.New("there is no JSON object in it that is whole")
	errAmbiguous = errors.New("there is more than one JSON object in it, or one that is not whole")
	errInline    = errors.New("its JSON object has an empty list and stands within a sentence")
)

// findObject returns the JSON object with the given list in an answer that may
// have thinking before it and prose or a code fence around it. It does not choose
// among objects: the change may hold an object, and the answer may quote it. Two
// objects are therefore an error, and so is an empty list within a sentence.
func findObject(content, list string) (string, error) {
	content = afterThinking(content)
	begins := regexp.MustCompile(`\{\s*"` + list + `"\s*:`)
	at := begins.FindStringIndex(content)
	if at == nil {
		return otherObject(content)
	}
	object, ok := firstObject(content[at[0]:])
	if !ok || begins.MatchString(content[at[0]+len(object):]) {
		return "", errAmbiguous
	}
	if inSentence(content[:at[0]]) && emptyList(object, list) {
		return "", errInline
	}
	return object, nil
}

// otherObject returns the first object of an answer without the list: the schema
// then tells the model what is missing.
func otherObject(content string) (string, error) {
	if from := strings.Index(content, "{"); from >= 0 {
		if object, ok := firstObject(content[from:]); ok {
			return object, nil
		}
	}
	return "", errNoObject
}

// firstObject returns the JSON object at the beginning of s.
func firstObject(s string) (string, bool) {
	var object json.RawMessage
	if json.NewDecoder(strings.NewReader(s)).Decode(&object) != nil {
		return "", false
	}
	return string(object), true
}

// inSentence reports whether the line before an object has other text than blanks
// or the beginning of a code fence.
func inSentence(before string) bool {
	line := before[strings.LastIndex(before, "\n")+1:]
	return strings.TrimLeft(strings.TrimSpace(line), "`json") != ""
}

func emptyList(object, list string) bool {
	var lists map[string][]json.RawMessage
	return json.Unmarshal([]byte(object), &lists) == nil && len(lists[list]) == 0
}

// endOfThinking matches the marks with which models end their thinking.
var endOfThinking = regexp.MustCompile(`</think(?:ing)?>|</reasoning>|<\|channel\|>final<\|message\|>`)

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
