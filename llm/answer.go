package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

// An answer is what one call brought.
type answer struct {
	remarks []remark
	model   string
	usage   review.Usage
}

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

func compileSchema() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(findingsSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("findings.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("findings.schema.json")
}

// read checks a completion and takes the findings out of it. What is refused,
// cut off or malformed is an error, never an empty list; what it cost is
// returned all the same.
func (r *Reviewer) read(resp openai.ChatCompletionResponse) (answer, error) {
	h := resp.Header()
	a := answer{
		model: resp.Model,
		usage: review.Usage{Calls: 1, PromptTokens: resp.Usage.PromptTokens, CompletionTokens: resp.Usage.CompletionTokens},
	}
	if len(resp.Choices) == 0 {
		return a, malformed(h, "it has no choice")
	}
	choice := resp.Choices[0]
	switch {
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return a, refused(h, "its content filter cut the answer off")
	case choice.Message.Refusal != "":
		return a, refused(h, "the model refused to answer")
	case choice.FinishReason == openai.FinishReasonLength:
		return a, cutOff(h, r.cfg.MaxAnswerTokens)
	}
	var err error
	if a.remarks, err = r.parse(choice.Message.Content); err != nil {
		return a, malformed(h, err.Error())
	}
	return a, nil
}

// parse reads the JSON object in content. Its errors quote nothing of it.
func (r *Reviewer) parse(content string) ([]remark, error) {
	object, ok := findObject(content)
	if !ok {
		return nil, errors.New("there is no JSON object in it, or more than one")
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(object))
	if err != nil {
		return nil, errors.New("its JSON does not parse")
	}
	if err := r.schema.Validate(value); err != nil {
		return nil, fmt.Errorf("it does not follow the schema at %s", violation(err))
	}
	var findings struct {
		Findings []remark `json:"findings"`
	}
	if err := json.Unmarshal([]byte(object), &findings); err != nil {
		return nil, errors.New("its JSON does not decode")
	}
	for i, m := range findings.Findings {
		if why := m.wrong(); why != "" {
			return nil, fmt.Errorf("finding %d %s", i+1, why)
		}
	}
	return findings.Findings, nil
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

// findObject takes the one JSON object out of an answer that may have thinking
// before it and prose or a code fence around it. It does not look for a
// "likely" object: the change may hold one, and an answer may quote it.
func findObject(content string) (object string, ok bool) {
	if start := strings.TrimSpace(content); !strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "```") {
		if _, after, thought := strings.Cut(content, "</think>"); thought {
			content = after
		}
	}
	from, to := strings.Index(content, "{"), strings.LastIndex(content, "}")
	if from < 0 || to < from || strings.Contains(content[to:], "{") {
		return "", false
	}
	return content[from : to+1], true
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
