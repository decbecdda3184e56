package redaction

import (
	"slices"
	"strings"
)

// maxKey bounds a block of key material; the largest RSA keys have 13 kB.
const maxKey = 64 << 10

// pem looks at the BEGIN (which 0) or END (which 1) line of a PEM or PGP block.
// A key is found by either, for a hunk may show only one of them.
func (d *detector) pem(which, begin, end int) {
	labelEnd := end
	for labelEnd < len(d.s) && labelEnd-end < 80 && d.s[labelEnd] != '-' && d.s[labelEnd] != '\n' {
		labelEnd++
	}
	label := strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(d.s[end:labelEnd], "%20", " "), "+", " "))
	if !strings.Contains(label, "PRIVATE") {
		return
	}
	if which == 0 {
		d.keyForward(run(d.s, labelEnd, &dashSet, 8))
	} else {
		d.keyBackward(runBack(d.s, begin, &dashSet, 8))
	}
}

var dashSet = setOf("-")

// keyForward masks the body that begins at i: runs of base64 with what may
// stand between them, up to anything else.
func (d *detector) keyForward(i int) {
	if i < d.keyEnd {
		return
	}
	at := i
	s, limit := d.s, min(len(d.s), i+maxKey)
	full, runs, covered := 0, 0, i
	for i < limit {
		begin := d.keyGlue(i)
		if begin < 0 || begin >= limit {
			break
		}
		stop := run(s, begin, &plain64, maxKey)
		body := stop - begin
		for stop < limit && s[stop] == '=' {
			stop++
		}
		if body == 0 || !keyRun(s, begin, stop, full) {
			break
		}
		if strings.HasPrefix(s[stop:], "...") {
			stop += 3 // cut short by its author
		}
		d.found("private-key", "key block", begin, stop)
		full = max(full, body)
		runs++
		i, covered = stop, stop
		if body < full && full >= 40 {
			break // the last line is the only short one
		}
	}
	if runs == 0 {
		covered = d.keyLines(at)
	}
	d.keyEnd = covered
	d.named = max(d.named, covered)
}

// keyLines masks the lines of a key that begins in the line around at and has
// something before or after it on every line: the time of a log, a number,
// a command that writes it. It returns the end of what was read.
func (d *detector) keyLines(at int) int {
	column := max(0, strings.LastIndex(d.s[lineBegin(d.s, at):at], "-----BEGIN"))
	covered, found := at, false
	for i := lineEndWithin(d.s, at, maxKeyLine); i < min(len(d.s), at+maxKey); {
		end := lineEndWithin(d.s, i, maxKeyLine)
		if strings.Contains(d.s[i:end], "-----END") {
			return i + strings.Index(d.s[i:end], "-----END")
		}
		begin, stop := bodyIn(d.s, i, end, column)
		if begin == stop && (found || strings.TrimSpace(d.s[i:end]) != "" && headerIn(d.s[i:end]) == "") {
			return covered
		}
		d.found("private-key", "key line", begin, stop)
		found, covered, i = found || begin < stop, end, end
	}
	return covered
}

// keyLinesBack is keyLines for a key whose END stands at at, back to least. It
// reports whether it is such a key.
func (d *detector) keyLinesBack(at, least int) bool {
	begin := lineBegin(d.s, at)
	column := at - begin
	if from, stop := bodyIn(d.s, begin, at, 0); strings.Trim(d.s[begin:at], keyMargins) == "" || from < stop {
		return false
	}
	found := false
	for n := 0; begin > least && n < maxKey/16; n++ {
		i := max(least, lineBegin(d.s, begin-1))
		from, stop := bodyIn(d.s, i, begin, column)
		if from == stop || n > 1 && stop-from < minKeyLine || strings.Contains(d.s[i:begin], "-----END") {
			break
		}
		d.found("private-key", "key line", from, stop)
		begin, found = i, true
	}
	return found
}

// maxKeyLine bounds a line of a key with what stands around it.
const maxKeyLine = 512

// headerIn is the header of a key that a line holds, or "".
func headerIn(line string) string {
	for _, name := range []string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: "} {
		if strings.Contains(line, name) {
			return name
		}
	}
	return ""
}

// bodyIn is the part of a key in the line s[at:end]: its longest run of base64,
// or the short one, the last of a key, that begins in the column of the others.
func bodyIn(s string, at, end, column int) (begin, stop int) {
	for i := at; i < end; i++ {
		next := run(s, i, &keySet, end-i)
		if next-i > stop-begin {
			begin, stop = i, next
		}
		i = next
	}
	if stop-begin >= 40 && mixedCase(s[begin:stop]) {
		return begin, stop
	}
	begin = min(end, at+column)
	stop = run(s, begin, &keySet, end-begin)
	if text := s[begin:stop]; len(text) < 4 || begin > at && keySet.has(s[begin-1]) || last(text) != '=' && !random(text) && !gibberish(text) {
		return begin, begin
	}
	return begin, stop
}

// keyRun reports whether s[begin:stop] is a line of a key, after lines of up to
// full bytes. A short one is the last, and has to look like one.
func keyRun(s string, begin, stop, full int) bool {
	n := stop - begin
	if n >= 40 || s[stop-1] == '=' {
		return true
	}
	if stop < len(s) && (s[stop] == '(' || s[stop] == '.' || s[stop] == ':' || s[stop] == '_') {
		return false
	}
	text := s[begin:stop]
	if full >= 40 {
		rest := s[stop:min(len(s), stop+24)]
		return strings.Contains(rest, "----") || random(text) || n >= 16 || strings.TrimLeft(rest, " \t\\nr\"'`+,;)") == ""
	}
	return n >= 12 && shapeOf(text).digit > 0 || strings.HasPrefix(text, "MI")
}

// keyGlue skips what stands between two runs of a key: blanks, line ends and
// their escapes, quotes, operators, comment marks, headers. -1 ends the key.
func (d *detector) keyGlue(i int) int {
	s := d.s
	for n := 0; i < len(s) && n < 400; n++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte("nrt\n\r\\\"'", s[i+1]) >= 0:
			i += 2
		case spaceSet.has(c), quoteSet.has(c), strings.IndexByte("\\,;#*>|&.()", c) >= 0, c == '/' && strings.HasPrefix(s[i:], "//"), c == '/' && i > 0 && s[i-1] == '/',
			c == '+' && i+1 < len(s) && (spaceSet.has(s[i+1]) || quoteSet.has(s[i+1])):
			i++
		case c == '-':
			return -1
		case isAlnum(c) || c == '/' || c == '+':
			end := headerEnd(s, i)
			if end == i {
				return i
			}
			i = end
		default:
			return -1
		}
	}
	return i
}

// headerEnd returns the end of the header line at i, as in "DEK-Info: ...", or
// i if there is none.
func headerEnd(s string, i int) int {
	name := run(s, i, &wordSet, 24)
	if name+1 < len(s) && s[name] == ':' && s[name+1] == ' ' && name > i {
		if escaped := strings.Index(s[name:min(len(s), name+120)], `\n`); escaped > 0 && strings.IndexByte(s[name:name+escaped], '\n') < 0 {
			return name + escaped
		}
		if word := run(s, name+2, &notBlank, 64); word < len(s) && s[word] == ' ' && oneWordHeader(s[i:name]) {
			return word
		}
		return lineEnd(s, name)
	}
	return i
}

func oneWordHeader(name string) bool { return name == "DEK-Info" || name == "Proc-Type" }

// keyBackward masks the body that ends before the END line at end. Unless the
// BEGIN line was seen, it is the lines above that are base64 to their ends.
func (d *detector) keyBackward(end int) {
	if end > d.keyEnd && d.keyLinesBack(end, d.keyEnd) {
		return
	}
	for n := 0; end > d.keyEnd && n < maxKey/16; n++ {
		stop := end
		for stop > d.keyEnd && end-stop < 40 && (spaceSet.has(d.s[stop-1]) || strings.IndexByte("\\\"'`+,;#*>|n/", d.s[stop-1]) >= 0 && !keyByteBefore(d.s, stop)) {
			stop--
		}
		begin := runBack(d.s, stop, &keySet, maxKey)
		if begin < stop && d.s[begin] == 'n' && begin > 0 && d.s[begin-1] == '\\' {
			begin++
		}
		text := d.s[begin:stop]
		if len(text) < 16 && (n > 0 || distinct(text) < 2) || n > 0 && shapeOf(text).digit == 0 && len(text) < 40 {
			return
		}
		if n == 0 && len(text) < 16 && shapeOf(text).digit == 0 && last(text) != '=' && !strings.ContainsAny(d.s[stop:end], "\n\\") {
			return // a word before END, such as the command that writes it
		}
		// Short text right before END may be anything, such as the line number
		// that a prompt shows there: only a sure finding blocks a request.
		if !d.certain || len(text) >= 16 {
			d.found("private-key", "key block", begin, stop)
		}
		end = begin
	}
}

var keySet = setOf(digits, letters, "+/=")

// keyByteBefore reports whether the byte before i, which may be glue, is part
// of a run of base64.
func keyByteBefore(s string, i int) bool {
	c := s[i-1]
	if c == 'n' {
		return i < 2 || s[i-2] != '\\'
	}
	return (c == '+' || c == '/') && i >= 2 && isAlnum(s[i-2])
}

// keyBodyAtCut masks the lines of base64 that a hunk begins with: the middle of
// a block whose BEGIN line is not shown. What ends as a public one is left.
func (d *detector) keyBodyAtCut() {
	for _, at := range d.view.sections {
		if d.mayBeKey(at) {
			d.keyBodyAt(at)
		}
	}
}

// mayBeKey is a quick look at whether the line at at is of base64, a header of
// a key, or too short to tell.
func (d *detector) mayBeKey(at int) bool {
	begin := run(d.s, at, &keyMargin, maxGap)
	end := run(d.s, begin, &keySet, minKeyLine)
	return end-begin == minKeyLine || end == len(d.s) || d.s[end] == '\n' || d.s[end] == '\r' || d.s[end] == ':' || d.s[end] == '-'
}

// keyMargin is what may stand before a line of a key.
var keyMargin = setOf(keyMargins)

const keyMargins = " \t\"'`#*>|/"

func (d *detector) keyBodyAt(at int) {
	at = d.skipKeyHeaders(at)
	type line struct{ begin, end int }
	var lines []line
	width := 0
	for at < len(d.s) {
		end := lineEnd(d.s, at)
		begin, stop := keyLine(d.s, at, end)
		n := stop - begin
		if n < minKeyLine && len(lines) == 0 || width > 0 && n > width || n == 0 {
			break
		}
		lines = append(lines, line{begin, stop})
		at = end
		if width > 0 && n < width {
			break
		}
		width = n
	}
	if len(lines) == 0 || width < 40 || len(lines) < 2 && !d.endsKey(at) || isPublicEnd(d.s[at:]) || !mixedCase(d.s[lines[0].begin:lines[0].end]) {
		return
	}
	for _, l := range lines {
		d.found("private-key", "key body", l.begin, l.end)
	}
}

// skipKeyHeaders skips blank lines and headers of a key, as DEK-Info.
func (d *detector) skipKeyHeaders(at int) int {
	for at < len(d.s) {
		end := lineEnd(d.s, at)
		if text := strings.TrimSpace(d.s[at:end]); text != "" && headerEnd(d.s, at) == at {
			break
		}
		at = end
	}
	return at
}

func (d *detector) endsKey(at int) bool {
	return strings.Contains(d.s[at:min(len(d.s), at+60)], "PRIVATE KEY")
}

// leadsKey and trailsKey may stand around the base64 of a line.
var (
	leadsKey  = setOf(" \t\r\n\"'`#*>|")
	trailsKey = setOf(" \t\r\n\"'`,;\\")
)

// keyLine returns the range of base64 in the line s[at:end] if there is nothing
// else in it but marks of comments and literals.
func keyLine(s string, at, end int) (begin, stop int) {
	begin, stop = at, end
	inComment := func(i int) bool { // that two slashes begin
		return s[i] == '/' && (i+1 < stop && s[i+1] == '/' || i > at && s[i-1] == '/')
	}
	for begin < stop && (leadsKey.has(s[begin]) || inComment(begin)) {
		begin++
	}
	joins := func(i int) bool { // with the literal on the next line
		return s[i] == '+' && i+1 < end && s[i+1] == ' ' || s[i] == 'n' && i+1-begin > 2 && s[i-1] == '\\'
	}
	for stop > begin && (trailsKey.has(s[stop-1]) || joins(stop-1)) {
		stop--
	}
	if !allIn(s[begin:stop], &keySet) {
		return begin, begin
	}
	return begin, stop
}

func isPublicEnd(s string) bool {
	s = s[:min(len(s), 80)]
	return slices.ContainsFunc(publicEnds, func(end string) bool { return strings.Contains(s, end) })
}

var publicEnds = []string{"END CERT", "END PUBLIC", "END NEW CERT", "END RSA PUBLIC", "END SSH2 PUBLIC", "END PGP PUBLIC", "END X509"}
