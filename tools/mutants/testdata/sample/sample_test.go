package sample

import "testing"

func TestCounts(t *testing.T) {
	var c counts
	if half, odd := c.add(7); half != 3 || !odd || c.calls != 1 {
		t.Error(half, odd, c)
	}
}

func TestClamp(t *testing.T) {
	if got := clamp(day, 2*day); got != day || join("a", "b") != "ab" {
		t.Error(got)
	}
}

func TestCountdown(t *testing.T) {
	if got := countdown(2); got != 2 {
		t.Error(got)
	}
}
