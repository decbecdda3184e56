package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A remark is one finding as the model wrote it. The schema says what it has.
type remark struct {
	Path        string          `json:"path"`
	Severity    review.Severity `json:"severity"`
	Category    review.Category `json:"category"`
	Confidence  float64         `json:"confidence"`
	Title       string          `json:"title"`
	Explanation string          `json:"explanation"`
	Suggestion  string          `json:"suggestion"`
	Quote       string          `json:"quote"`
	// Line is where the model thinks the quote is: a hint, no more.
	Line float64 `json:"line"`
}

func compileSchema(name, schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// content takes what the model said out of a completion. What is refused or cut
// off is an error, never an empty list. Some servers give no finish reason.
func (r *Reviewer) content(resp openai.ChatCompletionResponse) (string, error) {
	h := resp.Header()
	if len(resp.Choices) == 0 {
		return "", unusable(h, errors.New("it has no choice"))
	}
	choice := resp.Choices[0]
	switch {
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return "", refused(h, "its content filter cut the answer off")
	case choice.Message.Refusal != "":
		return "", refused(h, "the model refused to answer")
	case choice.FinishReason == openai.FinishReasonLength:
		return "", cutOff(h, r.cfg.MaxAnswerTokens)
	}
	return choice.Message.Content, nil
}

// parse reads the findings in content. Its errors quote nothing of it.
func (r *Reviewer) parse(content string) ([]remark, error) {
	var findings struct {
		Findings []remark `json:"findings"`
	}
	if err := decode(content, "findings", r.schemas.findings, &findings); err != nil {
		return nil, err
	}
	for i, m := range findings.Findings {
		if why := m.wrong(); why != "" {
			return nil, fmt.Errorf("finding %d %s", i+1, why)
		}
	}
	return findings.Findings, nil
}

// decode takes the one JSON object with the given list out of content and
// decodes it into out, if the schema allows it. Its errors quote nothing.
func decode(content, list string, schema *jsonschema.Schema, out any) error {
	object, err := findObject(content, list)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(object))
	if err != nil {
		return errors.New("its JSON does not parse")
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("it does not follow the schema at %s", violation(err))
	}
	if err := json.Unmarshal([]byte(object), out); err != nil {
		return errors.New("its JSON does not decode")
	}
	return nil
}

// wrong says what is wrong with m that the schema cannot say: constrained
// decoding does not know bounds on all endpoints.
func (m remark) wrong() string {
	switch {
	case m.Confidence < 0 || m.Confidence > 1:
		return "has a confidence that is not from 0 to 1"
	case strings.TrimSpace(m.Title) == "":
		return "has no title"
	case strings.TrimSpace(m.Explanation) == "":
		return "has no explanation"
	}
	return ""
}

// violation names the first place where an answer leaves the schema, by the
// schema's own words.
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

func refused(h http.Header, why string) error {
	return &failure.Error{
		Class:     failure.ContentPolicy,
		Err:       fmt.Errorf("model endpoint did not review the change: %s", why),
		RequestID: requestID(h),
	}
}

func cutOff(h http.Header, limit int) error {
	return &failure.Error{
		Class:     failure.TooLarge,
		Err:       fmt.Errorf("answer of the model was cut off at the answer limit of %d tokens: raise it", limit),
		RequestID: requestID(h),
	}
}
