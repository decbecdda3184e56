package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/store"
)

// A clock is wrong only if the difference exceeds the error of the measurement.
func TestClocksAreCompared(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		skew, slack time.Duration
		err         error
		status      checkStatus
		words       string
	}{
		"it agrees":                      {time.Second, 0, nil, statusOK, "agrees"},
		"the answer took long":           {time.Minute, time.Minute, nil, statusOK, "agrees"},
		"it is ahead":                    {time.Hour, time.Minute, nil, statusFail, "the clock of Postgres is 1h0m0s ahead of this machine's"},
		"it is behind":                   {-time.Hour, time.Minute, nil, statusFail, "the clock of Postgres is 1h0m0s behind this machine's"},
		"it cannot be read, and why not": {0, 0, errors.New("refused"), statusWarn, "the clock of Postgres cannot be read: refused"},
	} {
		got := compareClock("Postgres", tt.skew, tt.slack, tt.err)
		if got.Status != tt.status || !strings.Contains(got.Detail, tt.words) || (got.Fix == "") != (tt.status == statusOK) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOldPostgres(t *testing.T) {
	t.Parallel()
	if got := checkVersion(store.OldestPostgres); got.Status != statusOK {
		t.Errorf("%+v", got)
	}
	if got := checkVersion(store.OldestPostgres - 1); got.Status != statusFail || got.Detail != "version 14 is too old" || got.Fix != "upgrade it to 15 or newer" {
		t.Errorf("%+v", got)
	}
}
