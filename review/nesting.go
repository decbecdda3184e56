package review

import "strings"

// TooNested reports whether a text of YAML may hold collections nested so deep that the
// parser takes gigabytes: its memory grows with the square of the depth, so that 64 kB of
// brackets would end the worker. Every bracket may open a collection, and every dash of a
// line an element.
func TooNested(yaml string) bool {
	const maxOpened, maxElements = 4_000, 500
	if strings.Count(yaml, "[")+strings.Count(yaml, "{") > maxOpened {
		return true
	}
	for line := range strings.Lines(yaml) {
		if strings.Count(line, "-")+strings.Count(line, "?") > maxElements {
			return true
		}
	}
	return false
}
