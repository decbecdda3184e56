package redaction

import "strings"

// This file finds tokens of rules without an anchor. longRuns looks at every run of
// token bytes that is long enough: such a run covers one of every stride bytes.
func (d *detector) longRuns() {
	for i := stride - 1; i < len(d.s); i += stride {
		if i+half < len(d.s) && !mayBeRun(d.s[i-half:i+half]) {
			continue
		}
		begin, end := i, i+1
		for begin > 0 && inRun[d.s[begin-1]] != 0 && i-begin < maxToken {
			begin--
		}
		for end < len(d.s) && inRun[d.s[end]] != 0 && end-i < maxToken {
			end++
		}
		if end-begin >= stride {
			d.longRun(begin, end)
		}
		i += (end - 1 - i) / stride * stride
	}
}

// stride is the length of the shortest run of interest: a Twilio id. Of a run that covers a
// byte, at least half are before or behind it.
const stride, half = 34, 16

// mayBeRun reports whether every second byte of one of the halves of t is in a run. It does not
// branch, because in code the answer for one byte is a coin toss.
func mayBeRun(t string) bool {
	return inRun[t[1]]&inRun[t[3]]&inRun[t[5]]&inRun[t[7]]&inRun[t[9]]&inRun[t[11]]&inRun[t[13]]&inRun[t[15]]|
		inRun[t[17]]&inRun[t[19]]&inRun[t[21]]&inRun[t[23]]&inRun[t[25]]&inRun[t[27]]&inRun[t[29]]&inRun[t[31]] != 0
}

// inRun is 1 for the bytes of runSet.
var inRun = runSet.table()

// longRun masks the tokens in the run s[begin:end].
func (d *detector) longRun(begin, end int) {
	if isTicketLine(d.s, begin, end) {
		d.report("p4-ticket", "p4 ticket", end-32, end)
		return
	}
	for at := begin; at < end; at++ {
		if at > begin && isAlnum(d.s[at-1]) {
			continue
		}
		for _, t := range d.engine.runs {
			if first, last, ok := t.match(d.s, at); ok {
				d.reportToken(t, first, last, at)
				at = last - 1
				break
			}
		}
	}
}

// isTicketLine reports whether a run is a line of a .p4tickets file,
// host:port=user:TICKET, or of the output of p4 tickets.
func isTicketLine(s string, begin, end int) bool {
	text := s[begin:end]
	if len(text) < 36 || (end < len(s) && !spaceSet.has(s[end]) && !quoteSet.has(s[end])) {
		return false
	}
	ticket := text[len(text)-32:]
	return text[len(text)-33] == ':' && allIn(ticket, &upperHex) && !allIn(ticket, &digitSet) &&
		strings.ContainsAny(text[:len(text)-33], "=:")
}

// isMixedCase reports whether s has capitals, small letters and digits.
func isMixedCase(s string) bool {
	sh := shapeOf(s)
	return sh.upper > 0 && sh.lower > 0 && sh.digit > 0
}
