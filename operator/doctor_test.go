package main

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/store"
)

// A clock is wrong only if the difference exceeds the error of the measurement.
func TestClocksAreCompared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		skew, slack time.Duration
		want        checkStatus
	}{
		{time.Second, 0, statusOK}, {time.Minute, time.Minute, statusOK}, {time.Hour, time.Minute, statusFail}, {-time.Hour, time.Minute, statusFail},
	} {
		if got := checkClock(tt.skew, tt.slack); got.Status != tt.want {
			t.Errorf("%s, measured within %s: %+v", tt.skew, tt.slack, got)
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
