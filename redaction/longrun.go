package redaction

import "strings"

// This file finds tokens of rules without an anchor. longRuns looks at every run of
// token bytes that is long enough: such a run covers one of every stride bytes.
func (d *detector) longRuns() {
	for i := stride - 1; i < len(d.s); i += stride {
		if inRun[d.s[i]] == 0 {
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

// stride is the length of the shortest run of interest: a Twilio id.
const stride = 34

// inRun is 1 for the bytes of runSet.
var inRun = runSet.table()

// longRun masks the tokens in the run s[begin:end].
func (d *detector) longRun(begin, end int) {
	if s := d.s[begin:end]; !strings.HasPrefix(s, "//") && !strings.Contains(s, "://") {
		if isTicketLine(d.s, begin, end) {
			d.report("p4-ticket", "p4 ticket", end-32, end)
			return
		}
		d.storageKey(begin, end)
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

// storageKey masks keys of Azure Storage and Cosmos DB: 64 bytes in base64.
func (d *detector) storageKey(begin, end int) {
	s := d.s[begin:end]
	if !strings.HasSuffix(s, "==") || len(s) < 88 {
		return
	}
	key := s[len(s)-88:]
	before := s[:len(s)-88]
	if allIn(key[:86], &plain64) && (before == "" || !plain64.has(lastByte(before))) && !strings.HasSuffix(before, "-") && isMixedCase(key) && !d.isContentHash(end-88) {
		d.report("azure-key", "storage key", end-88, end)
	}
}

// isContentHash reports whether a digest of a package, in a NuGet lock file, begins at i.
func (d *detector) isContentHash(i int) bool {
	before := strings.TrimRight(d.s[max(0, i-maxName):i], " \t\"':=")
	name := before[runBack(before, len(before), &codeIdent, maxName):]
	return lists["digest"][strings.ToLower(name)]
}

// isMixedCase reports whether s has capitals, small letters and digits.
func isMixedCase(s string) bool {
	sh := shapeOf(s)
	return sh.upper > 0 && sh.lower > 0 && sh.digit > 0
}
