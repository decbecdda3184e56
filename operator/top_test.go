package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func TestTop(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	contains(t, s.must("top"), "BREAKER", "workflows", "notify", "AUTH_DENIED")
	var now overview
	noError(t, json.Unmarshal([]byte(s.must("top", "--json")), &now))
	if len(now.DeadLetters) != 1 || now.DeadLetters[0].Class != "AUTH_DENIED" || now.Reviews["dead_lettered"] != 1 || len(now.Stages) != 7 {
		t.Errorf("got %+v", now)
	}
}

// top shows the slots of worker.max_in_flight_per_path only if one is taken or
// waited for.
func TestTopShowsSlots(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	limits := map[string]int{"//depot/hot/...": 1, "//depot/gone/...": 1}
	configured := map[string]string{"CRITICIZER_WORKER_MAX_IN_FLIGHT_PER_PATH": "//depot/idle/... 3,//depot/hot/... 1"}
	if out := s.with(configured, "top").out; strings.Contains(out, "SLOTS") {
		t.Errorf("unused slots are shown: %s", out)
	}
	books, fetch := s.database.Open(t, store.RoleBookkeeping), s.database.Open(t, store.RoleFetch)
	for cl, paths := range map[review.Changelist][]string{4711: {"//depot/hot/..."}, 4712: {"//depot/hot/..."}, 4713: {"//depot/gone/..."}} {
		if _, err := books.OpenJob(t.Context(), requestFor(cl), "run"); err != nil {
			t.Fatal(err)
		}
		noError(t, fetch.RequireSlots(t.Context(), cl, 1, paths, false))
	}
	if _, err := s.database.Conn(t).Exec(t.Context(), `update criticizer.slots set asked_at = now() - interval '4 minutes 30 seconds' + (changelist_id - 4711) * interval '1 s'`); err != nil {
		t.Fatal(err)
	}
	for _, cl := range []review.Changelist{4711, 4712, 4713} {
		if _, err := books.AcquireSlots(t.Context(), requestFor(cl).Key, limits); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, s.with(configured, "top").out, "SLOTS", "WAITING", "LONGEST", "NEXT", "PATH",
		"1 of 1  1        4m       4712 v1  //depot/hot/...", "1       0        -        -        //depot/gone/...")
	var now overview
	if err := json.Unmarshal([]byte(s.with(configured, "top", "--json").out), &now); err != nil || len(now.Slots) != 3 ||
		now.Slots[0] != (slotView{Path: "//depot/idle/...", Limit: 3}) || now.Slots[1].Next != "4712 v1" || now.Slots[1].Waiting != 1 {
		t.Errorf("got %+v, %v", now.Slots, err)
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
	if err := json.Unmarshal([]byte(s.with(away, "top", "--json").out), &now); err != nil || now.Reviews["dead_lettered"] != 1 || len(now.Stages) != 0 {
		t.Errorf("got %+v, %v", now, err)
	}
}
