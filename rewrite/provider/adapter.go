package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/rewrite"
)

// An adapter implements one wire format.
type adapter struct {
	// providers have the format. A job that names another one is refused.
	providers []string
	// path is the endpoint of a batch's lines; empty if there are no batches.
	path openai.BatchEndpoint
	// body returns the request of one prompt.
	body func(prompt) any
	// answer reads an answer by parts. Its errors have a class and quote nothing.
	answer func(object) (string, error)
	// url is the path of a single request; nil for the chat API, which has a client of its own.
	url func(prompt) string
}

var adapters = map[rewrite.AdapterKind]adapter{
	rewrite.OpenAIChat: {
		providers: []string{"openai", "other"},
		path:      openai.BatchEndpointChatCompletions,
		body:      func(p prompt) any { return chatRequest(p) },
		answer:    readChat, // of a batch
	},
	rewrite.OpenAIResponses: {
		providers: []string{"openai", "other"},
		path:      openai.BatchEndpointResponses,
		body:      func(p prompt) any { return responseRequest(p) },
		answer:    readResponse,
		url:       func(prompt) string { return "/responses" },
	},
	rewrite.GeminiGenerate: {
		providers: []string{"google"},
		body:      func(p prompt) any { return geminiRequest(p) },
		answer:    readGemini,
		url:       geminiURL,
	},
}

// ask sends the request of one prompt and decodes the answer.
func (a adapter) ask(ctx context.Context, e *endpoint.Endpoint, p prompt) (string, error) {
	var body json.RawMessage
	if _, err := e.Call(ctx, http.MethodPost, a.url(p), a.body(p), &body); err != nil {
		return "", callError(err)
	}
	return a.read(objectOf(body))
}

// read reads an answer with status 200, which some proxies give to errors.
func (a adapter) read(resp object) (string, error) {
	if resp == nil {
		return "", malformed()
	}
	if problem := resp.object("error"); problem != nil && problem.number("code") >= http.StatusBadRequest {
		return "", endpoint.Refused(problem.number("code"), resp["error"])
	}
	return a.answer(resp)
}

// answer decodes the content of a model's answer, which must be one JSON object of the
// schema.
func answer(content string) (string, error) {
	var object struct {
		Rewrite *string `json:"rewrite"`
	}
	d := json.NewDecoder(strings.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&object); err != nil || object.Rewrite == nil {
		return "", unusable("it is not a JSON object of the schema")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", unusable("it has text after the JSON object")
	}
	return *object.Rewrite, nil
}

func callError(err error) error {
	if failure.ClassOf(err) == failure.SchemaInvalid {
		return malformed()
	}
	return err
}

// malformed is the error of a response that violates the provider's API: a failure of
// the provider, which may be transient. The content of an answer has other errors.
func malformed() error {
	return failure.Errorf(failure.UpstreamInternal, "response of the model endpoint violates its API")
}

func refused(why string) error {
	return failure.Errorf(failure.ContentPolicy, "model endpoint did not rewrite the message: %s", why)
}

func cutOff() error {
	return failure.Errorf(failure.TooLarge, "answer of the model exceeds the answer limit: raise it")
}
