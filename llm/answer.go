package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/review"
)

// A thinkingLimitError is the error of an answer whose token limit was used up by thinking.
type thinkingLimitError struct{ limit int }

func (e thinkingLimitError) Error() string {
	return fmt.Sprintf("thinking of the model used up the limit of %d tokens for an answer: raise llm.max_answer_tokens, or lower reasoning_effort in llm.extra", e.limit)
}

// open returns the object in an answer, which has the list for the task, and whether the
// answer was cut off after a part of the list.
func open(a endpoint.Answer, list string) (o object, cut bool, err error) {
	end := a.End()
	said, thought := withoutThinking(a)
	blank := strings.TrimSpace(said) == ""
	o, err = findObject(said, list)
	if blank && end != endpoint.EndCut && !a.Early { // some servers have all of it in the field of the thinking
		if in, failed := findObject(thought, list); failed == nil && in.whole {
			o, err, blank = in, nil, false
		}
	}
	switch {
	case a.Early && (err != nil || !o.whole):
		return o, false, a.Fail(failure.NetworkUnreachable, endpoint.ErrEarly)
	case a.Broken() != nil:
		return o, false, a.Broken()
	case end == endpoint.EndRefused:
		return o, false, a.Fail(failure.ContentPolicy, errors.New("model endpoint did not review the change: its content filter cut the answer off"))
	case a.Refusal != "":
		return o, false, a.Fail(failure.ContentPolicy, errors.New("model endpoint did not review the change: the model refused"))
	case a.Tools && blank:
		return o, false, a.Fail(failure.SchemaInvalid, unusableError{why: "it calls a tool, and there is none"})
	case end == endpoint.EndCut && !o.whole && len(o.items) == 0 && mostlyThinking(a, said):
		return o, true, a.Fail(failure.TooLarge, thinkingLimitError{a.Limit})
	case end == endpoint.EndCut && !o.whole && len(o.items) == 0:
		return o, true, a.Fail(failure.TooLarge, fmt.Errorf("answer of the model was cut off at the limit of %d tokens: raise llm.max_answer_tokens", a.Limit))
	case err != nil && blank && thought != "":
		return o, false, a.Fail(failure.SchemaInvalid, unusableError{why: "it has only thinking and no answer"})
	case err != nil:
		return o, false, a.Fail(failure.SchemaInvalid, unusableError{why: err.Error()})
	case !o.whole && end != endpoint.EndCut:
		return o, false, a.Fail(failure.SchemaInvalid, unusableError{why: errNoObject.Error()})
	}
	return o, !o.whole, nil
}

// mostlyThinking reports whether more than half of the tokens of a are not those of the text
// after the thinking. Not all servers report the tokens of thinking.
func mostlyThinking(a endpoint.Answer, said string) bool {
	content := countTokens(said)
	all := max(a.Usage.CompletionTokens, a.Parts, countTokens(a.Content))
	return a.Reasoning > all/2 || content < all/2 || all == 0
}

// A remark is one finding as the model wrote it, valid under the schema.
type remark struct {
	Path        string          `json:"path"`
	Quote       string          `json:"quote"`
	Line        float64         `json:"line"` // only a hint
	Trigger     string          `json:"trigger"`
	Explanation string          `json:"explanation"`
	Category    review.Category `json:"category"`
	Severity    review.Severity `json:"severity"`
	Confidence  float64         `json:"confidence"`
	Title       string          `json:"title"`
	Suggestion  string          `json:"suggestion"`
	Replacement string          `json:"replacement"`
}

// decodeItems returns the valid elements of a list, and the number of the others. If none
// is valid, the error describes the first. It is shown to the model and quotes nothing of
// the answer.
func decodeItems[T any](ctx context.Context, schema *jsonschema.Schema, items []json.RawMessage) (valid []T, invalid int, err error) {
	for i, raw := range items {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		var item T
		why := check(schema, raw)
		if why == nil && json.Unmarshal(raw, &item) != nil {
			why = errors.New("does not decode")
		}
		if why == nil {
			valid = append(valid, item)
			continue
		}
		if invalid++; err == nil {
			err = fmt.Errorf("element %d %w", i+1, why)
		}
	}
	if len(valid) > 0 {
		err = nil
	}
	return valid, invalid, err
}

// check returns an error that names the place in raw and the keyword of the schema that it
// violates.
func check(schema *jsonschema.Schema, raw json.RawMessage) error {
	tokens := json.NewDecoder(bytes.NewReader(raw))
	tokens.UseNumber()
	for token, err := tokens.Token(); err == nil; token, err = tokens.Token() {
		if n, ok := token.(json.Number); ok && (len(n) > 20 || strings.ContainsAny(n.String(), "eE")) { // which takes the schema's library a long time
			return errors.New("has a number with an exponent or of more than 20 digits")
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return errors.New("does not parse")
	}
	err = schema.Validate(value)
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return errors.New("does not follow the schema at its root")
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	return fmt.Errorf("does not follow the schema at /%s (%s)", strings.Join(v.InstanceLocation, "/"), strings.Join(v.ErrorKind.KeywordPath(), "/"))
}

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
}

// begins matches the beginning of an answer's object.
var begins = regexp.MustCompile(`\{\s*"(?:codes|findings|verdicts)"\s*:`)

// findObject reads the JSON object in a text that may have prose or a code fence around it. It does
// not choose among objects: the change may hold an object, and the answer may quote it.
func findObject(content, list string) (object, error) {
	at := begins.FindAllStringIndex(content, 2)
	if len(at) == 0 {
		return object{}, errNoObject
	}
	o, err := readObject(withoutSlips(content[at[0][0]:]), list)
	if err == nil && o.whole && len(at) > 1 {
		return o, errAmbiguous
	}
	return o, err
}

var (
	// slipPlaces matches what may have a slip: a string, and a comma at the end of a list or an object.
	slipPlaces = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|,\s*[\]}]`)
	// slips matches a slip in a string, or an escape that is none.
	slips = regexp.MustCompile(`\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\'|\\|[\x00-\x1f]`)
)

// withoutSlips returns JSON without the slips that models make and that have one meaning: code in
// a string that is copied as it is, and a comma after the last element. A model that is asked again
// repeats them.
func withoutSlips(text string) string {
	return slipPlaces.ReplaceAllStringFunc(text, func(place string) string {
		if place[0] == ',' {
			return place[1:]
		}
		return slips.ReplaceAllStringFunc(place, func(slip string) string {
			switch {
			case slip == `\'`: // an escape of other languages
				return "'"
			case slip == `\`:
				return `\\`
			case slip[0] < ' ':
				return fmt.Sprintf(`\u%04x`, slip[0])
			}
			return slip
		})
	})
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
			return o, nil //nolint:nilerr // an incomplete object is not an error here
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
	o.whole = err == nil
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

// beginOfThinking and endOfThinking match the marks with which models begin and end their thinking.
var (
	beginOfThinking = regexp.MustCompile(`(?i)^\s*(?:<(?:\w{1,12}:)?(?:think(?:ing)?|thought|reasoning|reflection|analysis)>|\[THINK\]|<\|channel\|?>(?:analysis|thought)|<\|(?:begin_of_thought|start_thinking)\|>|◁think▷)`)
	endOfThinking   = regexp.MustCompile(`(?i)</(?:\w{1,12}:)?(?:think(?:ing)?|thought|reasoning|reflection|analysis)>|\[/THINK\]|<\|channel\|>final(?: (?:<\|constrain\|>)?\w+)?<\|message\|>|<channel\|>|assistantfinal|<\|(?:end_of_thought|end_thinking)\|>|◁/think▷`)
)

// withoutThinking returns the content of a after the model's thinking, and thinking that is not in
// a content with an end of it. An object in thinking that has not ended is a draft. An answer that
// begins with an object has no thinking before it, but may quote such a mark.
func withoutThinking(a endpoint.Answer) (said, thought string) {
	if start := strings.TrimSpace(a.Content); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "```") {
		return a.Content, a.Thinking
	}
	if at := endOfThinking.FindStringIndex(a.Content); at != nil {
		return a.Content[at[1]:], a.Thinking
	}
	if beginOfThinking.MatchString(a.Content) {
		return "", a.Thinking + a.Content
	}
	return a.Content, a.Thinking
}
