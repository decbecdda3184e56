package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A completion is the answer of a model as its endpoint sent it, whole or in a stream.
// All of its text is untrusted.
type completion struct {
	model, content, refusal string
	finish                  string // as the endpoint words it, "" if it sent none
	early                   bool   // the stream ended without a mark of its end
	tools                   bool   // the model called a tool
	reasoning               int    // tokens of thinking, as far as they were reported
	usage                   review.Usage
	events                  int // parts of a stream; each has at least one token
	header                  http.Header
}

// A messageContent is the content of a message or of a part of it.
type messageContent struct {
	Content      string          `json:"content"`
	Refusal      string          `json:"refusal"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
}

// A reply is one JSON object of an endpoint: a completion of the chat API, a part of
// its stream, a response, or an event of a stream of responses.
type reply struct {
	Model   string `json:"model"`
	Choices []struct {
		Message, Delta messageContent
		FinishReason   string `json:"finish_reason"`
	} `json:"choices"`
	Usage    *usage          `json:"usage"`
	Error    json.RawMessage `json:"error"`
	Response *reply          `json:"response"` // in the last event of a stream of responses
	// Of the responses API.
	Status     string                  `json:"status"`
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Output     []struct {
		Type    string `json:"type"`
		Content []struct {
			Type, Text, Refusal string
		} `json:"content"`
	} `json:"output"`
}

// A usage has the counters of both APIs.
type usage struct {
	Prompt     int        `json:"prompt_tokens"`
	Completion int        `json:"completion_tokens"`
	Input      int        `json:"input_tokens"`
	Output     int        `json:"output_tokens"`
	PromptIn   usageParts `json:"prompt_tokens_details"`
	InputIn    usageParts `json:"input_tokens_details"`
	CompleteIn usageParts `json:"completion_tokens_details"`
	OutputIn   usageParts `json:"output_tokens_details"`
	CacheHit   int        `json:"prompt_cache_hit_tokens"`
}

type usageParts struct {
	Cached    int `json:"cached_tokens"`
	Reasoning int `json:"reasoning_tokens"`
}

// errStalled is the cause of a call that was canceled because the endpoint was silent.
var errStalled = errors.New("the endpoint was silent")

// complete sends body and reads the answer. It ends a call whose endpoint is silent for
// the timeout of e, takes a multiple of it in all, or sends more than twice the limit of
// tokens. If it fails within the answer, the completion has what was received.
func (e *Endpoint) complete(ctx context.Context, api string, body map[string]any, limit int) (completion, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return completion{}, failure.Errorf(failure.ConfigInvalid, "encode the model request: %w", err)
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(totalTimeouts*e.cfg.Timeout, func() { cancel(errStalled) }).Stop()
	silence := time.AfterFunc(e.cfg.Timeout, func() { cancel(errStalled) })
	defer silence.Stop()
	c, err := e.exchange(call, api, encoded, limit, func() { silence.Reset(e.cfg.Timeout) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(context.Cause(call), errStalled):
		err = failure.Errorf(failure.NetworkTimeout, "model endpoint was silent for %s, or its answer took longer than %d times as long", e.cfg.Timeout, totalTimeouts)
	}
	return c, err
}

// exchange is complete without its time limits; alive is called at each received part.
func (e *Endpoint) exchange(ctx context.Context, api string, body []byte, limit int, alive func()) (completion, error) {
	resp, err := e.send(ctx, http.MethodPost, e.at(apiPaths[api]), body)
	if err != nil {
		return completion{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	c := completion{header: resp.Header}
	alive()
	err = c.read(aliveReader{limited(resp.Body), alive}, 2*limit+1_000)
	if err == nil || failure.ClassOf(err) != failure.Unknown {
		return c, err
	}
	return c, connectionError(ctx, err)
}

// An aliveReader calls alive at every part that arrives.
type aliveReader struct {
	io.Reader
	alive func()
}

func (r aliveReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.alive()
	return n, err
}

// read reads a whole answer, or a stream of at most maxEvents parts; the rest of a
// longer one is left to the server, which ends it with the connection.
func (c *completion) read(body io.Reader, maxEvents int) error {
	r := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		text := bytes.TrimSpace(line)
		data, streamed := bytes.CutPrefix(text, []byte("data:"))
		switch {
		case streamed:
			done, failed := c.event(bytes.TrimSpace(data))
			if failed != nil && err == io.EOF && failure.ClassOf(failed) == failure.SchemaInvalid {
				c.early = true // within an event
				return nil
			}
			if done || failed != nil {
				return failed
			}
			if c.events > maxEvents {
				c.finish = "length"
				return nil
			}
		case c.events == 0 && len(text) > 0 && !isField(text):
			return c.whole(io.MultiReader(bytes.NewReader(line), r))
		}
		if err == io.EOF {
			if c.events == 0 {
				return malformed(c.header)
			}
			c.early = c.finish == ""
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isField reports a line of a stream that is not data: a comment or another field.
func isField(line []byte) bool {
	return line[0] == ':' || bytes.HasPrefix(line, []byte("event:")) || bytes.HasPrefix(line, []byte("id:")) || bytes.HasPrefix(line, []byte("retry:"))
}

func (c *completion) event(data []byte) (done bool, err error) {
	if string(data) == "[DONE]" {
		if c.events == 0 {
			return true, malformed(c.header)
		}
		return true, nil
	}
	var part reply
	if json.Unmarshal(data, &part) != nil {
		return true, malformed(c.header)
	}
	c.events++
	if part.Response != nil && part.Response.Status != "in_progress" && part.Response.Status != "queued" {
		part = *part.Response
	}
	return false, c.add(part)
}

// whole reads an answer that is not a stream.
func (c *completion) whole(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var all reply
	if json.Unmarshal(data, &all) != nil {
		return malformed(c.header)
	}
	if len(all.Error) <= len("null") && len(all.Choices) == 0 && len(all.Output) == 0 {
		return malformed(c.header)
	}
	return c.add(all)
}

// add adds a part of the answer. An error within an answer gets its status from its code,
// because the status of the response is 200.
func (c *completion) add(part reply) error {
	if len(part.Error) > len("null") {
		return bodyError(http.StatusOK, part.Error, c.header)
	}
	if part.Model != "" {
		c.model = part.Model
	}
	if len(part.Choices) > 0 {
		choice := part.Choices[0]
		for _, s := range []messageContent{choice.Message, choice.Delta} {
			c.content += s.Content
			c.refusal += s.Refusal
			c.tools = c.tools || len(s.ToolCalls) > len("null") || len(s.FunctionCall) > len("null")
		}
		if choice.FinishReason != "" {
			c.finish = choice.FinishReason
		}
	}
	for _, item := range part.Output {
		c.tools = c.tools || strings.HasSuffix(item.Type, "_call")
		for _, s := range item.Content {
			c.content += s.Text
			c.refusal += s.Refusal
		}
	}
	if len(part.Output) > 0 {
		c.finish = part.Status
		if part.Incomplete.Reason != "" {
			c.finish = part.Incomplete.Reason
		}
	}
	if u := part.Usage; u != nil {
		c.usage.PromptTokens, c.usage.CompletionTokens = u.Prompt+u.Input, u.Completion+u.Output
		c.usage.CachedTokens = max(u.PromptIn.Cached, u.InputIn.Cached, u.CacheHit)
		c.reasoning = max(u.CompleteIn.Reasoning, u.OutputIn.Reasoning)
	}
	return nil
}

// count returns what the call used. Counters that cannot be true are replaced by
// estimates: a prompt has at most one token per byte and some for the chat template.
func (c completion) count(sent string, estimated int) review.Usage {
	u := c.usage
	u.Calls = 1
	const most = 10_000_000
	believable := u.PromptTokens > 0 && u.PromptTokens <= len(sent)+1_000 && u.CompletionTokens >= 0 && u.CompletionTokens < most &&
		u.CachedTokens >= 0 && u.CachedTokens <= u.PromptTokens
	if !believable {
		return review.Usage{Calls: 1, PromptTokens: estimated, CompletionTokens: max(countTokens(c.content), c.events), Estimated: true}
	}
	return u
}
