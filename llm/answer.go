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

// A finishReason is the meaning of a finish reason.
type finishReason int

const (
	finishUnknown finishReason = iota // none or another: the content decides
	finishWhole
	finishCut     // at the limit of tokens
	finishRefused // by a filter
)

// finishReasons are the finish reasons of all dialects, in lower case.
var finishReasons = map[string]finishReason{
	"stop": finishWhole, "end_turn": finishWhole, "eos": finishWhole, "completed": finishWhole, "stop_sequence": finishWhole,
	"length": finishCut, "max_tokens": finishCut, "max_output_tokens": finishCut, "model_context_window_exceeded": finishCut,
	"content_filter": finishRefused, "safety": finishRefused, "refusal": finishRefused, "recitation": finishRefused, "prohibited_content": finishRefused,
}

// A thinkingLimitError is the error of an answer whose token limit was used up by thinking.
type thinkingLimitError struct{ limit int }

func (e thinkingLimitError) Error() string {
	return fmt.Sprintf("thinking of the model used up the limit of %d tokens for an answer: raise llm.max_answer_tokens or lower llm.reasoning_effort", e.limit)
}

// open returns the object in the content of c, which has the list for the task, and
// whether the answer was cut off after a part of the list. limit is the answer limit of
// the call, in tokens.
func (c completion) open(list string, limit int) (o object, cut bool, err error) {
	end := finishReasons[strings.ToLower(c.finish)]
	if c.early {
		if o, err = findObject(c.content, list); err != nil || !o.whole {
			return o, false, answerError(failure.NetworkUnreachable, c.header, errors.New("connection to the model endpoint ended before the answer was complete"))
		}
	}
	switch {
	case end == finishRefused:
		return o, false, answerError(failure.ContentPolicy, c.header, errors.New("model endpoint did not review the change: its content filter cut the answer off"))
	case c.refusal != "":
		return o, false, answerError(failure.ContentPolicy, c.header, errors.New("model endpoint did not review the change: the model refused"))
	case c.tools && strings.TrimSpace(c.content) == "":
		return o, false, answerError(failure.SchemaInvalid, c.header, unusableError{"it calls a tool, and there is none"})
	}
	o, err = findObject(c.content, list)
	switch {
	case end == finishCut && !o.whole && len(o.items) == 0 && c.mostlyThinking():
		return o, true, answerError(failure.TooLarge, c.header, thinkingLimitError{limit})
	case end == finishCut && !o.whole && len(o.items) == 0:
		return o, true, answerError(failure.TooLarge, c.header, fmt.Errorf("answer of the model was cut off at the limit of %d tokens: raise llm.max_answer_tokens", limit))
	case err != nil:
		return o, false, answerError(failure.SchemaInvalid, c.header, unusableError{err.Error()})
	case !o.whole && end != finishCut:
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
