package llm

import (
	"encoding/json"
	"maps"
)

// The values of Config.API, and their paths.
const (
	apiChat      = "chat"
	apiResponses = "responses"
)

var apiPaths = map[string]string{apiChat: "/chat/completions", apiResponses: "/responses"}

// request returns the request body that asks model, as w describes its server. limit
// bounds the tokens of the answer.
func (r *Reviewer) request(w modelDialect, model, system, user string, limit int) map[string]any {
	body := map[string]any{"model": model, "stream": true}
	set := func(name string, value any, ok bool) {
		if ok {
			body[name] = value
		}
	}
	if r.cfg.Temperature != nil {
		body["temperature"] = *r.cfg.Temperature
	}
	if r.cfg.API == apiResponses {
		body["instructions"], body["input"], body["max_output_tokens"], body["store"] = system, user, limit, false
		set("text", map[string]any{"format": r.format(w)}, w.Format != FormatText)
		set("reasoning", map[string]any{"effort": r.cfg.ReasoningEffort}, r.cfg.ReasoningEffort != "")
	} else {
		messages := []map[string]string{{"role": "user", "content": user}}
		if system != "" {
			messages = append([]map[string]string{{"role": "system", "content": system}}, messages...)
		}
		body["messages"], body[w.LimitField] = messages, limit
		body["stream_options"] = map[string]any{"include_usage": true}
		set("response_format", r.format(w), w.Format != FormatText || r.cfg.AnswerFormat == FormatText)
		set("reasoning_effort", r.cfg.ReasoningEffort, r.cfg.ReasoningEffort != "")
	}
	for _, field := range w.without {
		delete(body, field)
	}
	maps.Copy(body, r.extra)
	return body
}

const schemaName = "review"

// format returns the field that asks for the format of the answer. The chat API has the
// schema in a field of its own.
func (r *Reviewer) format(w modelDialect) map[string]any {
	out := map[string]any{"type": w.Format}
	if w.Format != FormatSchema {
		return out
	}
	schema := map[string]any{"name": schemaName, "strict": true, "schema": json.RawMessage(r.prompts.schema)}
	if r.cfg.API == apiResponses {
		maps.Copy(out, schema)
	} else {
		out["json_schema"] = schema
	}
	return out
}
