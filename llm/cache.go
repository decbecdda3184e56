package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/review"
)

// cacheForm is the version of the form of a [cachedAnswer]. Raise it if a field gets another
// meaning: answers in the old form are not found then.
const cacheForm = 1

// A cachedAnswer is what the cache holds about a question, for other attempts and
// later versions of the review. All of it has passed redaction.
type cachedAnswer struct {
	// Findings and their counts are those of a review, Verdicts those of a verification.
	Findings []review.Finding `json:"findings,omitempty"`
	remarkCounts
	Verdicts []verdict `json:"verdicts,omitempty"`
	Model    string    `json:"model,omitempty"`
	// Switch is set if a fallback model answered.
	Switch review.Switch `json:"switch,omitzero"`
	// Proof proves that the model received the question; every answer has one. Cut is set if
	// the answer ended within its list.
	Proof review.Proof `json:"proof,omitzero"`
	Cut   bool         `json:"cut,omitempty"`
	// Split is set for a question without an answer whose part was asked for in smaller parts:
	// the cache may have their answers.
	Split bool `json:"split,omitempty"`
}

// cacheKey is a hash of the endpoint and of everything that is sent except fence and check
// codes. Another endpoint may have another model of that name, or a stand-in.
func (run *run) cacheKey(model string, q question) string {
	c := run.cfg
	settings, _ := json.Marshal([]any{cacheForm, c.BaseURL, model, c.MaxAnswerTokens, c.Extra})
	sum := sha256.Sum256(fmt.Appendf(settings, "\x00%s\x00%s", run.system, q.key()))
	return hex.EncodeToString(sum[:])
}

// cached returns a cached answer of any of the models. If there is none, ok is false, and only
// Split of the answer is set, if it is. If the cache fails, the question is asked again: that
// costs tokens, but the result is the same.
func (run *run) cached(ctx context.Context, q question) (answer cachedAnswer, ok bool) {
	cache := run.options.Cache
	if cache == nil {
		return cachedAnswer{}, false
	}
	split := false
	for _, model := range run.cfg.Models() {
		var a cachedAnswer
		data, err := cache.Get(ctx, run.cacheKey(model, q))
		if err == nil && data != nil {
			err = json.Unmarshal(data, &a)
		}
		if err != nil {
			run.lg.WarnContext(ctx, "answer cache not read", "changelist", run.change.Number, "error", err)
		} else if a.Proof.Codes > 0 {
			return a, true
		}
		split = split || a.Split
	}
	return cachedAnswer{Split: split}, false
}

func (run *run) cache(ctx context.Context, key string, a cachedAnswer) {
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
