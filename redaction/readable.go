package redaction

import (
	"encoding/binary"
	"strings"
)

// readable reports whether s is text. Text may have a NUL beside every byte, as
// in UTF-16, and up to 5 % other control characters.
func readable(s string) bool {
	control := controls(s)
	if control == 0 {
		return true
	}
	nul := strings.Count(s, "\x00")
	control -= nul
	if control*20 > len(s) || nul*2 > len(s)+2 {
		return false
	}
	return nul == 0 || nul*5 >= len(s)*2
}

// controls counts the control characters of s that text does not use. It skips
// eight bytes at a time that hold no rare control character.
func controls(s string) int {
	n := 0
	for ; len(s) >= 8; s = s[8:] {
		if rareControls(binary.LittleEndian.Uint64([]byte(s[:8]))) {
			for i := range 8 {
				n += int(controlByte[s[i]])
			}
		}
	}
	for i := range len(s) {
		n += int(controlByte[s[i]])
	}
	return n
}

// rareControls reports whether one of the eight bytes of x is below the tab or
// between the carriage return and the blank.
func rareControls(x uint64) bool {
	const ones, highs = ^uint64(0) / 255, ^uint64(0) / 255 * 128
	low := x &^ highs
	belowTab := (x - ones*'\t') &^ x
	between := (ones*(127+' ') - low) &^ x & (low + ones*(127-'\r'))
	return (belowTab|between)&highs != 0
}

// controlByte is 1 for the control characters that text does not use.
var controlByte = func() (t [256]uint8) {
	for c := range ' ' {
		if !strings.ContainsRune("\t\n\v\f\r\b\x1b", c) {
			t[c] = 1
		}
	}
	return t
}()
