package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/store"
)

// maxSkew is far below what the retry times and TTLs are about.
const maxSkew = 5 * time.Second

// clocks compares this machine's with those of the others.
func (p patient) clocks(ctx context.Context) []diagnosis {
	var found []diagnosis
	for _, clock := range []struct {
		whose string
		read  func(context.Context) (skew, slack time.Duration, err error)
	}{{"Postgres", p.postgresClock}, {"Temporal", p.temporalClock}, {"the model endpoint", p.modelClock}} {
		if clock.whose == "the model endpoint" && !p.serves(config.RoleLLM) {
			continue
		}
		skew, slack, err := clock.read(ctx)
		found = append(found, compared(clock.whose, skew, slack, err))
	}
	return found
}

// compared says what a reading of a clock, right give or take slack, is worth.
func compared(whose string, skew, slack time.Duration, err error) diagnosis {
	word := "ahead of"
	if skew < 0 {
		word = "behind"
	}
	switch {
	case err != nil:
		return warning("mend what keeps it from answering first", "the clock of %s cannot be read: %v", whose, err)
	case skew.Abs() > slack+maxSkew:
		return failing(fmt.Errorf("the clock of %s is %s %s this machine's", whose, skew.Abs().Round(time.Second), word), "have both kept by NTP")
	}
	return well("that of %s agrees", whose)
}

func (p patient) postgresClock(ctx context.Context) (skew, slack time.Duration, err error) {
	db, err := store.Open(ctx, quiet, p.cfg.Database.URL, "")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	begun := time.Now()
	server, err := db.Server(ctx)
	return server.Clock.Sub(begun), time.Since(begun), err
}

func (p patient) temporalClock(ctx context.Context) (skew, slack time.Duration, err error) {
	n, err := p.reach(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer n.Close()
	return n.Skew(ctx)
}

// modelClock reads the Date of an answer, to a question without a key.
func (p patient) modelClock(ctx context.Context) (skew, slack time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, p.cfg.LLM.BaseURL, http.NoBody)
	if err != nil {
		return 0, 0, errors.New("llm.base_url is no address")
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
		return 0, 0, errors.New("its answer has no Date")
	}
	return date.Sub(begun), time.Since(begun) + time.Second, nil // a Date has no fractions
}
