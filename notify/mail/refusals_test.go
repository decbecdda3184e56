package mail

import (
	"slices"
	"strings"
	"testing"
)

// Each reply of refusals.txt is decided by the row above it, and each row has a reply and a
// source. The phrases of a later row do not decide what an earlier one should.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n, replies, sources := -1, 0, 0
	total := 0
	endRow := func() {
		if n >= 0 && (replies == 0 || sources == 0) {
			t.Errorf("row %d (%s) has %d replies and %d sources", n+1, rules[n].fault, replies, sources)
		}
		replies, sources = 0, 0
	}
	for line := range strings.Lines(refusals) {
		line = strings.TrimRight(line, "\n")
		at, text, _ := strings.Cut(strings.TrimPrefix(line, "  > "), " ")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  ="):
			sources++
		case strings.HasPrefix(line, "  > "):
			replies++
			total++
			got := parseReply(t, step(at), text).rule()
			if i := indexOf(got); i != n {
				t.Errorf("%s %s: %s by row %d, want row %d (%s)", at, text, got.fault, i+1, n+1, rules[n].fault)
			}
		default:
			endRow()
			n++
		}
	}
	endRow()
	if n+1 != len(rules) || total < 70 {
		t.Errorf("%d of %d rows, %d replies", n+1, len(rules), total)
	}
}

func parseReply(t *testing.T, at step, line string) reply {
	t.Helper()
	if !slices.Contains(steps, at) || len(line) < 4 {
		t.Fatalf("%q is not a reply", line)
	}
	return newReply(at, int(line[0]-'0')*100+int(line[1]-'0')*10+int(line[2]-'0'), line[4:])
}

func indexOf(r rule) int {
	for i := range rules {
		if rules[i].fault == r.fault && rules[i].phrases == r.phrases &&
			strings.Join(rules[i].codes, " ") == strings.Join(r.codes, " ") && strings.Join(rules[i].enhanced, " ") == strings.Join(r.enhanced, " ") &&
			len(rules[i].at) == len(r.at) {
			return i
		}
	}
	return -1
}
