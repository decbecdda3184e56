package redaction

// looks keep the work of a matcher linear where names, prefixes or schemes
// stand within the values of others, as in key=key=key=: each would be read to
// the same end. They cover a stretch of text in which looks overlap.
type looks struct {
	begin, end int
	read       int // bytes, those read twice counted twice
}

// maxReads is how often a byte may be read on average.
const maxReads = 8

// crowded notes a look at s[begin:end] and reports whether the stretch it is in
// was looked at too often to look closer: such text is masked unseen.
func (l *looks) crowded(begin, end int) bool {
	if begin >= l.end {
		*l = looks{begin: begin}
	}
	l.end = max(l.end, end)
	l.read += end - begin
	return l.read > maxReads*(l.end-l.begin)
}
