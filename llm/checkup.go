package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// Describe probes the endpoint and returns the dialect that requests are made in.
func (r *Reviewer) Describe(ctx context.Context) string {
	r.probe(ctx)
	w := r.modelDialect(r.cfg.Model)
	text := fmt.Sprintf("dialect %s: answers limited by %s, format %s, prompts of %d tokens", w.Name, w.LimitField, w.Format, r.promptLimit())
	if w.inPrompt {
		text += ", schema in the prompt"
	}
	if r.context > 0 {
		text += fmt.Sprintf(", the server reports a context of %d tokens", r.context)
	}
	return text
}

// CheckUp sends a prompt of the configured size, without any part of a change, and returns
// how the endpoint handled it. If the endpoint did not read it, fix is the setting to
// change, otherwise "". It returns an error only if a call failed in a way that does not
// depend on the endpoint's abilities, such as a network error.
func (r *Reviewer) CheckUp(ctx context.Context) (detail, fix string, err error) {
	r.probe(ctx)
	limit := r.promptLimit()
	run := &run{Reviewer: r, system: r.prompts.system, fence: newNonce()}
	w := r.modelDialect(r.cfg.Model)
	part, err := filler(limit - minPromptTokens/2)
	if err != nil {
		return "", "", err
	}
	q := question{list: listFindings, part: part, read: func([]json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	p, err := run.prompt(w, q, "")
	if err != nil {
		return "", "", err
	}
	fix = fmt.Sprintf("raise %s of the server to %d tokens, or set llm.context_tokens to what it has", w.ContextSetting, limit+r.cfg.MaxAnswerTokens)
	most := r.answerLimit(r.cfg.Model, p.tokens, r.cfg.MaxAnswerTokens)
	done, err := r.endpoint.complete(ctx, r.cfg.API, r.request(w, r.cfg.Model, p.system, p.user, most), most)
	if isRefusal(err) {
		return "prompt refused: " + err.Error(), fix, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("try a prompt at the endpoint: %w", err)
	}
	used := done.count(p.system+p.user, p.tokens)
	if _, err := run.read(r.cfg.Model, q, p, most, done, used); err != nil {
		return "prompt ignored: " + err.Error(), fix, nil
	}
	reported := "no prompt tokens"
	if !used.Estimated {
		reported = fmt.Sprintf("%d prompt tokens", used.PromptTokens)
	}
	return fmt.Sprintf("a prompt of about %d tokens was read: all %d check codes, %s reported", p.tokens, len(p.codes), reported), "", nil
}

// isRefusal reports whether the endpoint answered with an error because of the request.
func isRefusal(err error) bool {
	_, answered := errors.AsType[apiError](err)
	class := failure.ClassOf(err)
	return answered && !class.Retryable() && class != failure.AuthDenied && class != failure.QuotaExhausted
}

// filler returns a chunk of at least n tokens.
func filler(n int) (chunk, error) {
	f := newFile("//check/up.txt", "add, text")
	var diff strings.Builder
	for i := range n / 16 {
		fmt.Fprintf(&diff, "+line %d of a text that is there to be long\n", i)
	}
	err := f.parse("@@ -0,0 +1 @@\n" + diff.String())
	return chunk{{f, f.hunks}}, err
}
