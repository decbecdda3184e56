package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/rewrite"
)

// An adapter speaks one wire format.
type adapter struct {
	// keyHeader takes the key; empty for a bearer token.
	keyHeader string
	// path is what the lines of a batch name; empty if there are no batches.
	path openai.BatchEndpoint
	// body is the request of one prompt.
	body func(prompt) any
	// read reads the body of an answer. Its errors have a class and quote nothing.
	read func(body []byte) (rewrite.Answer, error)
	// ask sends the request of one prompt and reads the answer.
	ask func(context.Context, *llm.Endpoint, prompt) (rewrite.Answer, error)
}

// adapters are all there are.
var adapters = map[rewrite.AdapterKind]adapter{
	rewrite.OpenAIChat: {
		path: openai.BatchEndpointChatCompletions,
		body: func(p prompt) any { return chatRequest(p) },
		read: readAs(readChat),
		ask:  askChat,
	},
	rewrite.OpenAIResponses: {
		path: openai.BatchEndpointResponses,
		body: func(p prompt) any { return responseRequest(p) },
		read: readAs(readResponse),
		ask:  askResponse,
	},
	rewrite.GeminiGenerate: {
		keyHeader: "X-Goog-Api-Key",
		body:      func(p prompt) any { return geminiRequest(p) },
		read:      readAs(readGemini),
		ask:       askGemini,
	},
}

// readAs reads a body as a T.
func readAs[T any](read func(T) (rewrite.Answer, error)) func([]byte) (rewrite.Answer, error) {
	return func(body []byte) (rewrite.Answer, error) {
		var resp T
		if json.Unmarshal(body, &resp) != nil {
			return rewrite.Answer{}, garbled()
		}
		return read(resp)
	}
}

// answer takes the rewrite out of what the model wrote, which has to be the one
// JSON object that was asked for.
func answer(content string, usage rewrite.Usage) (rewrite.Answer, error) {
	var object struct {
		Rewrite *string `json:"rewrite"`
	}
	d := json.NewDecoder(strings.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&object); err != nil || object.Rewrite == nil {
		return rewrite.Answer{Usage: usage}, unusable("it is not the JSON object that was asked for")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return rewrite.Answer{Usage: usage}, unusable("there is more than the JSON object that was asked for")
	}
	return rewrite.Answer{Text: *object.Rewrite, Usage: usage}, nil
}

// failed is the error of a call, which has a class.
func failed(err error) error {
	if failure.ClassOf(err) == failure.SchemaInvalid {
		return garbled()
	}
	return err
}

// garbled is the error of an answer that is none of the API's. That is a failure
// of the provider, which may pass; what a model wrote is judged by other errors.
func garbled() error {
	return failure.Errorf(failure.UpstreamInternal, "answer of the model endpoint is not what its API promises")
}

func refused(why string) error {
	return failure.Errorf(failure.ContentPolicy, "model endpoint did not rewrite the message: %s", why)
}

func cutOff() error {
	return failure.Errorf(failure.TooLarge, "answer of the model was cut off at the answer limit: raise it")
}
