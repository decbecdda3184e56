package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func TestTop(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.review(4711, errDenied)
	for _, want := range []string{"0 in progress", "1 dead-lettered", "1 unresolved", "AUTH_DENIED", "BREAKER", "workflows", "notify"} {
		contains(t, s.must("top"), want)
	}
	var now overview
	if err := json.Unmarshal([]byte(s.must("top", "--json")), &now); err != nil {
		t.Fatal(err)
	}
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
		if err := fetch.RequireSlots(t.Context(), cl, 1, paths, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.database.Conn(t).Exec(t.Context(), `update criticizer.admissions set asked_at = now() - interval '5 minutes' + (changelist_id - 4711) * interval '1 s'`); err != nil {
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

func TestTopRejects(t *testing.T) {
	t.Parallel()
	s := newEnvironment(t)
	s.refuses(s.with(nil, "top", "everything"), 2, "takes no arguments")
	s.refuses(s.with(nil, "top", "--every", "0s"), 2, "above zero")
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

// An overview that cannot be read does not end the watch.
func TestWatchContinuesAfterAnError(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var screen bytes.Buffer
	looks := 0
	watch(ctx, &screen, time.Millisecond, func() (int, int) { return 80, 24 }, func() (overview, error) {
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

// The overview of a busy installation fits on a terminal of 80 columns; on a smaller
// one it is cut.
func TestTopFitsTheScreen(t *testing.T) {
	t.Parallel()
	many := int64(12_345)
	o := overview{
		At: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), Reviews: map[string]int{"in_progress": 12_345, "succeeded": 1_234_567, "dead_lettered": 12_345},
		OldestS: 86_399, Escalated: 1_234, OldestDeadS: 8_640_000, Outbox: outboxView{Waiting: 12_345, OldestS: 86_399, Ambiguous: 1_234},
	}
	for _, stage := range breakerStages() {
		o.Stages = append(o.Stages, stageView{Stage: stage, Reviews: &many, Waiting: many, OldestS: 86_399, BreakerOpen: true})
	}
	o.Slots = []slotView{{Path: "//depot/main/shaders/...", Limit: 1000, Taken: 1000, Waiting: 12_345, OldestS: 8_640_000, Next: "12345678 v12"}}
	for range 30 {
		o.DeadLetters = append(o.DeadLetters, letterCount{"workflows", "UPSTREAM_UNAVAILABLE", "replaying", 12_345})
	}
	var page strings.Builder
	o.print(&page)
	for line := range strings.Lines(page.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	for _, size := range [][2]int{{80, 24}, {20, 5}, {200, 100}, {1, 1}} {
		lines := strings.Split(strings.TrimSuffix(fitted(page.String(), size[0], size[1]), "\n"), "\n")
		if len(lines) > max(1, size[1]-1) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > size[0] {
				t.Errorf("%v: a line of %d columns", size, n)
			}
		}
	}
	if fitted(page.String(), 200, 100) != page.String() {
		t.Error("a page that fits was changed")
	}
	if strings.Contains(page.String(), "\x1b") {
		t.Error("it is coloured")
	}
}
