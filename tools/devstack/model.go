package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	installed "github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/llm"
)

// modelFrom returns base URL and name of the model that the environment names. Without
// one, the URL is empty and the name is that of the simulated model.
func modelFrom(getenv func(string) string) (baseURL, model string) {
	baseURL, model = strings.TrimRight(getenv("CRITICIZER_LLM_BASE_URL"), "/"), getenv("CRITICIZER_LLM_MODEL")
	switch {
	case baseURL != "":
		return baseURL, model
	case getenv("OPENAI_API_KEY") != "" || getenv("OPENAI_API_KEY_FILE") != "":
		return "https://api.openai.com/v1", cmp.Or(model, "gpt-4.1-mini")
	}
	return "", cmp.Or(model, "llmsim-1")
}

// checkModel asks the model of the environment for an answer of a few tokens, so that
// nothing is started for an endpoint that cannot review.
func (e *environment) checkModel(ctx context.Context) error {
	e.settings["llm"] = map[string]any{"model": e.opts.model}
	if e.opts.baseURL == "" {
		return nil
	}
	if e.opts.model == "" {
		return fmt.Errorf("CRITICIZER_LLM_BASE_URL is %s: name a model of that endpoint in CRITICIZER_LLM_MODEL", e.opts.baseURL)
	}
	name := fmt.Sprintf("the model %s at %s", e.opts.model, e.opts.baseURL)
	err := e.out.during("asking "+name, func() error {
		reviewer, err := e.reviewer()
		if err != nil {
			return errors.New(strings.ReplaceAll(err.Error(), "\n", " ")) // a list
		}
		const timeout = 15 * time.Second
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it has not answered within %s", timeout))
		defer cancel()
		if err := reviewer.Ping(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		return nil
	})
	advice := "correct CRITICIZER_LLM_BASE_URL and CRITICIZER_LLM_MODEL, or unset both for the simulated model"
	switch {
	case err == nil:
		e.out.say("using %s: its provider receives the redacted changes and may charge for them", name)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failure.ClassOf(err) == failure.AuthDenied:
		advice = "correct OPENAI_API_KEY"
	case os.Getenv("CRITICIZER_LLM_BASE_URL") == "":
		advice = "correct CRITICIZER_LLM_MODEL, or unset OPENAI_API_KEY for the simulated model"
	}
	return fmt.Errorf("%s cannot review: %w: %s", name, err, advice)
}

// reviewer returns the client of the model, with the settings that the worker will have.
func (e *environment) reviewer() (*llm.Reviewer, error) {
	if err := e.writeConfig(); err != nil {
		return nil, err
	}
	cfg, err := installed.Load(e.config, os.Getenv)
	if err == nil {
		err = cfg.Check(installed.RoleEval) // which needs the model only
	}
	if err != nil {
		return nil, err
	}
	pipeline, err := cfg.NewPipeline(secret.New("a key for no text of a change"))
	if err != nil {
		return nil, err
	}
	return cfg.NewReviewer(slog.New(slog.DiscardHandler), pipeline)
}
