package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/review"
)

// A cachedAnswer is what the cache holds about a question, for other attempts and
// later versions of the review. All of it has passed redaction.
type cachedAnswer struct {
	// Answer is what the question's read returned, nil if no answer was usable.
	Answer json.RawMessage `json:"answer,omitempty"`
	Model  string          `json:"model,omitempty"`
	// Proof proves that the model received the question. Cut is set if the answer ended
	// within its list.
	Proof review.Proof `json:"proof,omitzero"`
	Cut   bool         `json:"cut,omitempty"`
	// TooLong is set if the endpoint found the prompt or its answer too long.
	TooLong bool `json:"too_long,omitempty"`
	// Unusable counts the unusable answers; Why is the reason for the last, in our
	// words.
	Unusable int    `json:"unusable,omitempty"`
	Why      string `json:"why,omitempty"`
}

// note returns the message that tells the model why its earlier answers were
// unusable, "" if there were none.
func (a cachedAnswer) note() string {
	if a.Unusable == 0 {
		return ""
	}
	return fmt.Sprintf("Answer %d to this could not be used: %s. Answer again, with the one JSON object that was asked for and nothing else.", a.Unusable, a.Why)
}

// cacheKey is a hash of the endpoint and of everything that is sent except fence and check
// codes. Another endpoint may have another model of that name, or a stand-in.
func (run *run) cacheKey(model string, q question) string {
	c := run.cfg
	settings, _ := json.Marshal([]any{c.BaseURL, model, c.MaxAnswerTokens, c.Temperature, c.ReasoningEffort, c.Extra})
	sum := sha256.Sum256(fmt.Appendf(settings, "\x00%s\x00%s", run.system, q.key()))
	return hex.EncodeToString(sum[:])
}

// cached returns the cached answer for key. If the cache fails, the question is
// asked again: that costs tokens, but the result is the same.
func (run *run) cached(ctx context.Context, key string) cachedAnswer {
	if a, ok := run.answers.Load(key); ok {
		return a.(cachedAnswer)
	}
	var a cachedAnswer
	var data []byte
	var err error
	if cache := run.options.Cache; cache != nil {
		data, err = cache.Get(ctx, key)
	}
	if err == nil && data != nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		run.lg.WarnContext(ctx, "answer cache not read", "changelist", run.change.Number, "error", err)
		a = cachedAnswer{}
	}
	run.answers.Store(key, a)
	return a
}

func (run *run) cache(ctx context.Context, key string, a cachedAnswer) {
	run.answers.Store(key, a)
	cache := run.options.Cache
	if cache == nil {
		return
	}
	data, err := json.Marshal(a)
	if err == nil {
		err = cache.Put(ctx, key, data)
	}
	if err != nil {
		run.lg.WarnContext(ctx, "answer not cached", "changelist", run.change.Number, "error", err)
	}
}

// cachedFromAny returns a cached usable answer of any of the models.
func (run *run) cachedFromAny(ctx context.Context, q question) (cachedAnswer, bool) {
	for _, model := range run.cfg.models() {
		if a := run.cached(ctx, run.cacheKey(model, q)); a.Answer != nil {
			return a, true
		}
	}
	return cachedAnswer{}, false
}
