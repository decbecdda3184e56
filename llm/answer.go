package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// An ending is what a finish reason means.
type ending int

const (
	endUnknown ending = iota // none or another: the content decides
	endWhole
	endCut     // at the limit of tokens
	endRefused // by a filter
)

// endings are the finish reasons of all dialects, in lower case.
var endings = map[string]ending{
	"stop": endWhole, "end_turn": endWhole, "eos": endWhole, "completed": endWhole, "stop_sequence": endWhole,
	"length": endCut, "max_tokens": endCut, "max_output_tokens": endCut, "model_context_window_exceeded": endCut,
	"content_filter": endRefused, "safety": endRefused, "refusal": endRefused, "recitation": endRefused, "prohibited_content": endRefused,
}

// A thoughtError is the error of an answer whose token limit was used up by thinking.
type thoughtError struct{ limit int }

func (e thoughtError) Error() string {
	return fmt.Sprintf("thinking of the model used up the limit of %d tokens for an answer: raise llm.max_answer_tokens or lower llm.reasoning_effort", e.limit)
}

// open returns the object in the content of c, which has the list for the task, and
// whether the answer was cut off after a part of the list. limit is the answer limit of
// the call, in tokens.
func (c completion) open(list string, limit int) (o object, cut bool, err error) {
	end := endings[strings.ToLower(c.finish)]
	switch {
	case end == endRefused:
		return o, false, answerError(failure.ContentPolicy, c.header, errors.New("model endpoint did not review the change: its content filter cut the answer off"))
	case c.refusal != "":
		return o, false, answerError(failure.ContentPolicy, c.header, errors.New("model endpoint did not review the change: the model refused"))
	case c.tools && strings.TrimSpace(c.content) == "":
		return o, false, answerError(failure.SchemaInvalid, c.header, unusableError{"it calls a tool, and there is none"})
	}
	o, err = findObject(c.content, list)
	switch {
	case end == endCut && !o.whole && len(o.items) == 0 && c.mostlyThinking():
		return o, true, answerError(failure.TooLarge, c.header, thoughtError{limit})
	case end == endCut && !o.whole && len(o.items) == 0:
		return o, true, answerError(failure.TooLarge, c.header, fmt.Errorf("answer of the model was cut off at the limit of %d tokens: raise llm.max_answer_tokens", limit))
	case err != nil:
		return o, false, answerError(failure.SchemaInvalid, c.header, unusableError{err.Error()})
	case !o.whole && end != endCut:
		return o, false, answerError(failure.SchemaInvalid, c.header, unusableError{errNoObject.Error()})
	}
	return o, !o.whole, nil
}

// mostlyThinking reports whether more than half of the answer's tokens were not its
// content. Not all servers report the tokens of thinking.
func (c completion) mostlyThinking() bool {
	content := countTokens(afterThinking(c.content))
	all := max(c.usage.CompletionTokens, c.events, countTokens(c.content))
	return c.reasoning > all/2 || content < all/2 || all == 0
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
func decodeItems[T any](schema *jsonschema.Schema, items []json.RawMessage) (valid []T, invalid int, err error) {
	for i, raw := range items {
		item, why := decodeItem[T](schema, raw)
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

func decodeItem[T any](schema *jsonschema.Schema, raw json.RawMessage) (item T, err error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return item, errors.New("does not parse")
	}
	if err := schema.Validate(value); err != nil {
		return item, fmt.Errorf("does not follow the schema at %s", violation(err))
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return item, errors.New("does not decode")
	}
	return item, nil
}

// violation names the first violation of the schema: the place in the answer and
// the keyword of the schema.
func violation(err error) string {
	v, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return "its root"
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	return "/" + strings.Join(v.InstanceLocation, "/") + " (" + strings.Join(v.ErrorKind.KeywordPath(), "/") + ")"
}
