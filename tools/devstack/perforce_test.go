package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
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
	testkit.NoError(t, err)
	want := []submitted{{3, "//other"}, {12, "//depot"}}
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v: oldest first", list, want)
	}
	if got := depotsOf(append(list, list...)); !slices.Equal(got, []string{"//other/...", "//depot/..."}) {
		t.Errorf("depots %v", got)
	}
}
