package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/store"
)

// maxSkew is far below every retry delay and TTL.
const maxSkew = 5 * time.Second

// clocks compares this machine's clock with those of the services.
func (i installation) clocks(ctx context.Context) []checkResult {
	var found []checkResult
	for _, clock := range []struct {
		whose string
		read  func(context.Context) (skew, slack time.Duration, err error)
	}{{"Postgres", i.postgresClock}, {"Temporal", i.temporalClock}, {"the model endpoint", i.modelClock}} {
		if clock.whose == "the model endpoint" && !i.serves(config.RoleLLM) {
			continue
		}
		skew, slack, err := clock.read(ctx)
		found = append(found, compareClock(clock.whose, skew, slack, err))
	}
	return found
}

// compareClock judges the difference between two clocks, which was measured with an
// error of at most slack.
func compareClock(whose string, skew, slack time.Duration, err error) checkResult {
	word := "ahead of"
	if skew < 0 {
		word = "behind"
	}
	switch {
	case err != nil:
		return warn("fix the service first", "the clock of %s cannot be read: %v", whose, err)
	case skew.Abs() > slack+maxSkew:
		return fail(fmt.Errorf("the clock of %s is %s %s this machine's", whose, skew.Abs().Round(time.Second), word), "synchronize both by NTP")
	}
	return ok("the clock of %s agrees", whose)
}

func (i installation) postgresClock(ctx context.Context) (skew, slack time.Duration, err error) {
	db, err := store.Open(ctx, quiet, wiring.Database(i.cfg), "")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	begun := time.Now()
	server, err := db.Server(ctx)
	return server.Clock.Sub(begun), time.Since(begun), err
}

func (i installation) temporalClock(ctx context.Context) (skew, slack time.Duration, err error) {
	n, err := dialTemporal(ctx, i.cfg)
	if err != nil {
		return 0, 0, err
	}
	defer n.Close()
	return n.Skew(ctx)
}

// modelClock reads the header Date of a response; the request carries no key.
func (i installation) modelClock(ctx context.Context) (skew, slack time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, i.cfg.LLM.BaseURL, http.NoBody)
	if err != nil {
		return 0, 0, errors.New("llm.base_url is not a URL")
	}
	begun := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return 0, 0, e.Err
	}
	if err != nil {
		return 0, 0, err
	}
	_ = answer.Body.Close()
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return 0, 0, errors.New("its response has no Date header")
	}
	return date.Sub(begun), time.Since(begun) + time.Second, nil // a Date header has whole seconds
}
