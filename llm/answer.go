package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A remark is one finding as the model wrote it, valid under the schema.
type remark struct {
	Path        string          `json:"path"`
	Severity    review.Severity `json:"severity"`
	Category    review.Category `json:"category"`
	Confidence  float64         `json:"confidence"`
	Title       string          `json:"title"`
	Explanation string          `json:"explanation"`
	Suggestion  string          `json:"suggestion"`
	Quote       string          `json:"quote"`
	Line        float64         `json:"line"` // only a hint
}

// content returns the text of a completion. A refused or truncated answer is an
// error. Some servers set no finish reason.
func (r *Reviewer) content(resp openai.ChatCompletionResponse) (string, error) {
	h := resp.Header()
	if len(resp.Choices) == 0 {
		return "", asUnusable(h, errors.New("it has no choice"))
	}
	choice := resp.Choices[0]
	switch {
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return "", answerError(failure.ContentPolicy, h, errors.New("model endpoint did not review the change: its content filter cut the answer off"))
	case choice.Message.Refusal != "":
		return "", answerError(failure.ContentPolicy, h, errors.New("model endpoint did not review the change: the model refused"))
	case choice.FinishReason == openai.FinishReasonLength:
		return "", answerError(failure.TooLarge, h, fmt.Errorf("answer of the model was cut off at the limit of %d tokens: raise the answer limit", r.cfg.MaxAnswerTokens))
	}
	return choice.Message.Content, nil
}

// parseFindings returns the findings in content. Its errors quote nothing of it.
func (r *Reviewer) parseFindings(content string) ([]remark, error) {
	var answer struct {
		Findings []remark `json:"findings"`
	}
	if err := r.findings.decode(content, &answer); err != nil {
		return nil, err
	}
	for i, m := range answer.Findings {
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("finding %d %w", i+1, err)
		}
	}
	return answer.Findings, nil
}

// decode extracts the JSON object from content, validates it against the schema
// and decodes it into out. Its errors quote nothing of it; they are shown to the
// model.
func (p *prompts) decode(content string, out any) error {
	object, err := findObject(content, p.list)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(object))
	if err != nil {
		return errors.New("its JSON does not parse")
	}
	if err := p.validator.Validate(value); err != nil {
		return fmt.Errorf("it does not follow the schema at %s", violation(err))
	}
	if err := json.Unmarshal([]byte(object), out); err != nil {
		return errors.New("its JSON does not decode")
	}
	return nil
}

// validate checks what the schema leaves out, because not all endpoints support
// bounds in constrained decoding.
func (m remark) validate() error {
	switch {
	case m.Confidence < 0 || m.Confidence > 1:
		return errors.New("has a confidence that is not from 0 to 1")
	case strings.TrimSpace(m.Title) == "":
		return errors.New("has no title")
	case strings.TrimSpace(m.Explanation) == "":
		return errors.New("has no explanation")
	}
	return nil
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
