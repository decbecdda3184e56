package main

import (
	"slices"
	"strings"
	"testing"
)

const someChanges = `... change 12
... time 1714521600
... user vera
... path //depot/src/*
... desc Say "... change 99" in a description.

... change 3
... time 1714521500
... user bruno
... path //other/...
`

func TestParseChanges(t *testing.T) {
	t.Parallel()
	list, err := parseChanges(strings.ReplaceAll(someChanges, "\n", "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []submitted{{3, "//other"}, {12, "//depot"}}
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v: oldest first", list, want)
	}
	if got := depotsOf(append(list, list...)); !slices.Equal(got, []string{"//other/...", "//depot/..."}) {
		t.Errorf("depots %v", got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	var list []submitted
	for i := range 10 {
		list = append(list, submitted{depot: string(rune('0' + i))})
	}
	for n, want := range map[int]string{1: "9", 2: "09", 4: "0369", 10: "0123456789", 99: "0123456789"} {
		var got strings.Builder
		for _, c := range spread(list, n) {
			got.WriteString(c.depot)
		}
		if got.String() != want {
			t.Errorf("spread over %d: %s, want %s", n, got.String(), want)
		}
	}
}
