package operator

import (
	"strings"
	"testing"
)

// A name from outside, such as a provider's ID of a batch, is one cell, and begins no row or column of its own.
func TestWriteTableKeepsCellsApart(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	WriteTable(&out, "  ", [][]string{
		{"BATCH", "STATUS", "LINES"},
		{"b1\r\nb2\tcompleted  9", "failed\x1b[2J", "3"},
	})
	const want = "  BATCH                      STATUS             LINES\n" +
		"  b1[U+000D] b2 completed 9  failed[U+001B][2J  3\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
