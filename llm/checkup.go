package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
)

// Describe probes the endpoint and returns the dialect that requests are made in.
func (r *Reviewer) Describe(ctx context.Context) string {
	shown := r.endpoint.Describe(ctx, r.cfg.Model)
	return fmt.Sprintf("%s, prompts of %d tokens", shown, r.promptLimit())
}

// CheckUp sends a prompt of the configured size, without any part of a change, and returns
// how the endpoint handled it. If the endpoint did not read it, fix is the setting to
// change, otherwise "". It returns an error only if a call failed in a way that does not
// depend on the endpoint's abilities, such as a network error.
func (r *Reviewer) CheckUp(ctx context.Context) (detail, fix string, err error) {
	r.endpoint.Probe(ctx)
	limit := r.promptLimit()
	run := &run{Reviewer: r, system: r.prompts.system, fence: newNonce()}
	part, err := filler(limit - minPromptTokens/2)
	if err != nil {
		return "", "", err
	}
	q := question{list: listFindings, part: part, read: func(context.Context, []json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	p, err := run.prompt(q, "")
	if err != nil {
		return "", "", err
	}
	fix = fmt.Sprintf("raise %s of the server to %d tokens, or set llm.context_tokens to what it has", r.endpoint.ContextSetting(), limit+r.cfg.MaxAnswerTokens)
	answer, err := r.endpoint.Ask(ctx, r.request(r.cfg.Model, p, r.answerLimit(r.cfg.Model, p.tokens, r.cfg.MaxAnswerTokens)))
	if isRefusal(err) {
		return "prompt refused: " + err.Error(), fix, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("try a prompt at the endpoint: %w", err)
	}
	used := usageOf(answer, p)
	if _, err := run.read(ctx, r.cfg.Model, q, p, answer, used); err != nil {
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
	_, answered := errors.AsType[endpoint.Error](err)
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
