package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// The results of a [Trial].
const (
	TrialHonored = "honored"
	TrialIgnored = "ignored" // accepted, and not done
	TrialRefused = "refused" // with an error
)

// TrialPrompt is the name of the trial without which nothing can be reviewed.
const TrialPrompt = "prompt"

// A Trial is what an endpoint makes of one request of a [Reviewer.CheckUp].
type Trial struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // the setting to change
}

// Describe probes the endpoint and returns the dialect that requests are made in.
func (r *Reviewer) Describe(ctx context.Context) string {
	r.probe(ctx)
	w := r.wire(r.cfg.Model)
	text := fmt.Sprintf("dialect %s: answers limited by %s, format %s, prompts of %d tokens", w.Name, w.LimitField, w.Format, r.promptLimit())
	if w.inPrompt {
		text += ", schema in the prompt"
	}
	if r.context > 0 {
		text += fmt.Sprintf(", the server reports a context of %d tokens", r.context)
	}
	return text
}

// CheckUp sends a prompt and asks for an answer of the configured sizes, with a schema,
// and makes a request that the endpoint has to refuse. Nothing of a change is sent. The
// error is that of a call that says nothing about the endpoint, such as a network error.
func (r *Reviewer) CheckUp(ctx context.Context) ([]Trial, error) {
	r.probe(ctx)
	var trials []Trial
	for _, t := range []struct {
		name string
		try  func(context.Context) (Trial, error)
	}{{"schema", r.trySchema}, {TrialPrompt, r.tryPrompt}, {"answer", r.tryAnswer}, {"refusal", r.tryRefusal}} {
		trial, err := t.try(ctx)
		if refused, ok := refusal(err); ok {
			trial, err = Trial{Result: TrialRefused, Detail: refused.Error(), Fix: trial.Fix}, nil
		}
		if err != nil {
			return trials, fmt.Errorf("try the endpoint's %s: %w", t.name, err)
		}
		trial.Name = t.name
		trials = append(trials, trial)
	}
	return trials, nil
}

// refusal returns an error with which the endpoint answered because of the request.
func refusal(err error) (*failure.Error, bool) {
	e, ok := errors.AsType[*failure.Error](err)
	_, answered := errors.AsType[apiError](err)
	return e, ok && answered && !e.Class.Retryable() && e.Class != failure.AuthDenied && e.Class != failure.QuotaExhausted
}

// filler returns a chunk of at least n tokens.
func filler(n int) (chunk, error) {
	f := &file{shown: "//check/up.txt", kind: "add, text"}
	var diff strings.Builder
	for i := range n / 16 {
		fmt.Fprintf(&diff, "+line %d of a text that is there to be long\n", i)
	}
	err := f.parse("@@ -0,0 +1 @@\n" + diff.String())
	return chunk{{f, f.hunks}}, err
}

func (r *Reviewer) tryPrompt(ctx context.Context) (Trial, error) {
	limit := r.promptLimit()
	run := &run{Reviewer: r, system: r.prompts.system, fence: newNonce()}
	w := r.wire(r.cfg.Model)
	fix := fmt.Sprintf("raise %s of the server to %d tokens, or set llm.context_tokens to what it has", w.ContextSetting, limit+r.cfg.MaxAnswerTokens)
	part, err := filler(limit - minPromptTokens/2)
	if err != nil {
		return Trial{}, err
	}
	q := question{list: listFindings, part: part, read: func([]json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	p, err := run.prompt(w, q, "")
	if err != nil {
		return Trial{}, err
	}
	done, err := r.endpoint.complete(ctx, r.cfg.API, r.request(w, r.cfg.Model, p.system, p.user, r.cfg.MaxAnswerTokens), r.cfg.MaxAnswerTokens)
	if err != nil {
		return Trial{Fix: fix}, err
	}
	used := done.count(p.system+p.user, p.tokens)
	if _, err := run.read(r.cfg.Model, q, p, r.cfg.MaxAnswerTokens, done, used); err != nil {
		return Trial{Result: TrialIgnored, Detail: err.Error(), Fix: fix}, nil
	}
	reported := "no prompt tokens"
	if !used.Estimated {
		reported = fmt.Sprintf("%d prompt tokens", used.PromptTokens)
	}
	return Trial{Result: TrialHonored, Detail: fmt.Sprintf("a prompt of about %d tokens was read: all %d check codes, %s reported", p.tokens, len(p.codes), reported)}, nil
}

func (r *Reviewer) tryAnswer(ctx context.Context) (Trial, error) {
	limit := r.cfg.MaxAnswerTokens
	const fix = "set llm.dialect to the family of the server, or lower llm.max_answer_tokens"
	done, err := r.say(ctx, r.cfg.Model, "Count upward from 1, one number per line, and never stop.", limit)
	if err != nil {
		return Trial{Fix: fix}, err
	}
	spent := max(done.usage.CompletionTokens, done.events)
	detail := fmt.Sprintf("an answer of %d tokens for a limit of %d, ended by %q", spent, limit, endingName(done.finish))
	if spent > limit+limit/10 {
		return Trial{Result: TrialIgnored, Detail: detail, Fix: fix}, nil
	}
	return Trial{Result: TrialHonored, Detail: detail}, nil
}

// endingName returns a finish reason if it is one that is listed: others are text of the
// endpoint.
func endingName(finish string) string {
	if _, known := endings[strings.ToLower(finish)]; known {
		return finish
	}
	return "no known reason"
}

// trySchema asks for an answer whose form only the request's schema determines.
func (r *Reviewer) trySchema(ctx context.Context) (Trial, error) {
	for {
		w := r.wire(r.cfg.Model)
		if w.Format == FormatText {
			return Trial{Result: TrialHonored, Detail: "no format is requested: the schema is in the prompt"}, nil
		}
		done, err := r.endpoint.complete(ctx, r.cfg.API, r.request(w, r.cfg.Model, "", "Greet the reader in one sentence. Answer in JSON if you can.", r.cfg.MaxAnswerTokens), r.cfg.MaxAnswerTokens)
		if err != nil {
			if r.learnFrom(ctx, r.cfg.Model, err) {
				continue
			}
			return Trial{Fix: "set llm.answer_format to text"}, err
		}
		_, opened := findObject(done.content, listFindings)
		if w.Format == FormatSchema && opened != nil {
			return Trial{Result: TrialIgnored, Detail: "the answer does not have the form of the schema", Fix: "set llm.answer_format to text: the schema is then in the prompt"}, nil
		}
		return Trial{Result: TrialHonored, Detail: "the answer has the form of " + string(w.Format)}, nil
	}
}

// unknownModel is a model that no endpoint has.
const unknownModel = "criticizer-unknown-model"

func (r *Reviewer) tryRefusal(ctx context.Context) (Trial, error) {
	_, err := r.say(ctx, unknownModel, "Answer: ready.", pingTokens)
	if refused, ok := refusal(err); ok {
		return Trial{Result: TrialHonored, Detail: "a request for an unknown model is refused: " + refused.Error()}, nil
	}
	if err != nil {
		return Trial{}, err
	}
	return Trial{Result: TrialIgnored, Detail: "a request for an unknown model is answered", Fix: "check that llm.model is the model that the server has loaded: it does not check the name"}, nil
}
