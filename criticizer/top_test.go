package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

func TestTop(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	contains(t, s.must("top"), "BREAKER", "workflows", "notify", "AUTH_DENIED")
	var now overview
	testkit.NoError(t, json.Unmarshal([]byte(s.must("top", "--json")), &now))
	if len(now.DeadLetters) != 1 || now.DeadLetters[0].Class != "AUTH_DENIED" || now.Reviews["retryable_failed"] != 1 || len(now.Stages) != 7 {
		t.Errorf("got %+v", now)
	}
}

// Operators use these commands while Temporal is down.
func TestTopAndStatusWithoutTemporal(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	away := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}
	for command, want := range map[string]string{"top": "1 dead-lettered", "status 4711": "Temporal could not be asked"} {
		got := s.with(away, strings.Fields(command)...)
		s.refuses(got, 1, "reach Temporal at 127.0.0.1:1")
		contains(t, got.out, want)
		contains(t, got.out, "AUTH_DENIED")
	}
	var now overview
	if err := json.Unmarshal([]byte(s.with(away, "top", "--json").out), &now); err != nil || now.Reviews["retryable_failed"] != 1 || len(now.Stages) != 0 {
		t.Errorf("got %+v, %v", now, err)
	}
}
