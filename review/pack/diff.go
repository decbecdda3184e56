package pack

import (
	"regexp"
	"strconv"
	"strings"
)

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// diffLines returns the lines of the new text that a diff shows, and those that it
// changes: the added ones, and the one after removed ones.
func diffLines(diff string) (shown map[int]bool, changed []int) {
	shown = map[int]bool{}
	n, removed := 0, false
	for line := range strings.Lines(diff) {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
			if m[2] == "0" {
				n++ // a hunk without new lines stands after the line
			}
			removed = false
			continue
		}
		switch line[0] {
		case '-':
			removed = true
			continue
		case '+':
			changed = append(changed, n)
		case ' ':
			if removed {
				changed = append(changed, n)
			}
		default:
			continue
		}
		removed = false
		shown[n] = true
		n++
	}
	return shown, changed
}
