package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// A kept answer is what is remembered of a question, in other attempts and in
// later versions of the review too. All of it has passed redaction.
type kept struct {
	// Answer is what the question's read returned, empty if none was of use.
	Answer json.RawMessage `json:"answer,omitempty"`
	Model  string          `json:"model,omitempty"`
	// TooLong is set if the endpoint found the prompt or its answer too long.
	TooLong bool `json:"too_long,omitempty"`
	// Useless counts the answers that could not be read, and Why says in our
	// words what was wrong with the last.
	Useless int    `json:"useless,omitempty"`
	Why     string `json:"why,omitempty"`
}

// key tells questions apart by all that is sent but the fence.
func (r *Reviewer) key(model string, q question) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%g\x00%s\x00%s\x00%s", model, r.cfg.AnswerFormat,
		r.cfg.MaxAnswerTokens, r.cfg.Temperature, q.schema, q.system[r.cfg.AnswerFormat], q.shown))
	return hex.EncodeToString(sum[:])
}

// recall returns what is kept under key. Where that cannot be read the question
// is asked again: it costs money, not correctness.
func (run *run) recall(ctx context.Context, key string) kept {
	run.mu.Lock()
	k, known := run.known[key]
	run.mu.Unlock()
	if known {
		return k
	}
	var data []byte
	var err error
	if cache := run.options.Cache; cache != nil {
		data, err = cache.Get(ctx, key)
	}
	if err == nil && data != nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		run.lg.WarnContext(ctx, "kept answer not read", "changelist", run.change.Number, "error", err)
		k = kept{}
	}
	run.mu.Lock()
	run.known[key] = k
	run.mu.Unlock()
	return k
}

// remember keeps k under key. What cannot be kept is asked again some day.
func (run *run) remember(ctx context.Context, key string, k kept) {
	run.mu.Lock()
	run.known[key] = k
	run.mu.Unlock()
	cache := run.options.Cache
	if cache == nil {
		return
	}
	data, err := json.Marshal(k)
	if err == nil {
		err = cache.Put(ctx, key, data)
	}
	if err != nil {
		run.lg.WarnContext(ctx, "answer not kept", "changelist", run.change.Number, "error", err)
	}
}

// answered returns the answer to q that is kept from any of the models.
func (run *run) answered(ctx context.Context, q question) (kept, bool) {
	for _, model := range run.cfg.models() {
		if k := run.recall(ctx, run.key(model, q)); k.Answer != nil {
			return k, true
		}
	}
	return kept{}, false
}
