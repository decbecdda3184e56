package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.review(4711, errDenied)
	for _, want := range []string{"0 in progress", "1 dead-lettered", "1 unresolved", "AUTH_DENIED", "BRAKE", "notify"} {
		contains(t, s.must("top"), want)
	}
	var now overview
	if err := json.Unmarshal([]byte(s.must("top", "-json")), &now); err != nil {
		t.Fatal(err)
	}
	if len(now.DeadLetters) != 1 || now.DeadLetters[0].Class != "AUTH_DENIED" || now.Reviews["dead_lettered"] != 1 || len(now.Stages) != 6 {
		t.Errorf("got %+v", now)
	}
}

func TestTopRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.refuses(s.with(nil, "top", "everything"), 2, "no arguments")
	s.refuses(s.with(nil, "top", "-every", "0s"), 2, "above zero")
}

// Who is on call looks when something is down.
func TestTopAndStatusWithoutTemporal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.review(4711, errDenied)
	away := map[string]string{"CRITICIZER_TEMPORAL_ADDRESS": "127.0.0.1:1"}
	for command, want := range map[string]string{"top": "1 dead-lettered", "status 4711": "of which Temporal could not be asked"} {
		got := s.with(away, strings.Fields(command)...)
		s.refuses(got, 1, "reach Temporal at 127.0.0.1:1")
		contains(t, got.out, want)
		contains(t, got.out, "AUTH_DENIED")
	}
	var now overview
	if err := json.Unmarshal([]byte(s.with(away, "top", "-json").out), &now); err != nil || now.Reviews["dead_lettered"] != 1 || len(now.Stages) != 0 {
		t.Errorf("got %+v, %v", now, err)
	}
}

// On a terminal an overview that cannot be had is no reason to stop.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var screen bytes.Buffer
	looks := 0
	watch(ctx, &screen, time.Millisecond, func() (overview, error) {
		if looks++; looks == 1 {
			return overview{}, errors.New("reach Temporal: refused")
		}
		stop()
		return overview{Reviews: map[string]int{}}, nil
	})
	pages := strings.Split(screen.String(), cursorHome+clearBelow)
	if len(pages) != 3 || !strings.Contains(pages[1], "refused") || !strings.Contains(pages[2], "0 in progress") {
		t.Errorf("drew %q", pages)
	}
}
