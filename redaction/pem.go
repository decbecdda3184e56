package redaction

import "strings"

// The triggers of pem. A hunk may show only one of the two lines of a key.
const (
	beginLine = iota
	endLine
)

// pem masks the key of a PEM or PGP block with the line of the trigger.
func (d *detector) pem(index, begin, end int) {
	labelEnd := end
	for labelEnd < len(d.s) && labelEnd-end < 80 && d.s[labelEnd] != '-' && d.s[labelEnd] != '\n' {
		labelEnd++
	}
	label := strings.NewReplacer("%20", " ", "+", " ").Replace(d.s[end:labelEnd])
	if !strings.Contains(strings.ToUpper(label), "PRIVATE") {
		return
	}
	if index == beginLine {
		d.keyForward(run(d.s, labelEnd, &dashSet, 8))
	} else {
		d.keyBackward(runBack(d.s, begin, &dashSet, 8))
	}
}

// keyForward masks the key that begins at i: runs of base64, with glue between them.
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
		stop += len(s[stop:max(stop, limit)]) - len(strings.TrimLeft(s[stop:max(stop, limit)], "="))
		if body == 0 || !isKeyRun(s, begin, stop, full) {
			break
		}
		if strings.HasPrefix(s[stop:], "...") {
			stop += 3 // cut short by its author
		}
		d.report("private-key", "key block", begin, stop)
		full = max(full, body)
		runs++
		i, covered = stop, stop
		if body < full && full >= 40 {
			break // only the last line is short
		}
	}
	if runs == 0 {
		covered = d.keyLines(at)
	}
	d.keyEnd = covered
	d.nameEnd = max(d.nameEnd, covered)
}

// keyLines masks the lines of a key whose BEGIN is at at, where each line has
// something before or after the key: the time of a log, a number, a command that
// writes it. It returns the end of what was read.
func (d *detector) keyLines(at int) int {
	column := max(0, strings.LastIndex(d.s[lineBegin(d.s, at):at], "-----BEGIN"))
	covered, found := at, false
	for i := lineEndWithin(d.s, at, maxKeyLine); i < min(len(d.s), at+maxKey); {
		end := lineEndWithin(d.s, i, maxKeyLine)
		line := d.s[i:end]
		if j := strings.Index(line, "-----END"); j >= 0 {
			return i + j
		}
		begin, stop := keyIn(d.s, i, end, column)
		if begin == stop && (found || strings.TrimSpace(line) != "" && !containsAny(line, heads["keyheader"])) {
			return covered
		}
		d.report("private-key", "key line", begin, stop)
		found, covered, i = found || begin < stop, end, end
	}
	return covered
}

// keyLinesBack is keyLines for a key whose END is at at. It reports whether there is one.
func (d *detector) keyLinesBack(at, least int) bool {
	begin := lineBegin(d.s, at)
	column := at - begin
	if from, stop := keyIn(d.s, begin, at, 0); allIn(d.s[begin:at], &keyMargin) || from < stop {
		return false
	}
	found := false
	for n := 0; begin > least && n < maxKey/16; n++ {
		i := max(least, lineBegin(d.s, begin-1))
		from, stop := keyIn(d.s, i, begin, column)
		if from == stop || n > 1 && stop-from < minKeyLine || strings.Contains(d.s[i:begin], "-----END") {
			break
		}
		d.report("private-key", "key line", from, stop)
		begin, found = i, true
	}
	return found
}

// keyIn returns the part of a key in the line s[at:end]: its longest run of
// base64, or a short run that begins in the given column, the last line of a key.
func keyIn(s string, at, end, column int) (begin, stop int) {
	for i := at; i < end; i++ {
		next := run(s, i, &keySet, end-i)
		if next-i > stop-begin {
			begin, stop = i, next
		}
		i = next
	}
	if stop-begin >= 40 && isMixedCase(s[begin:stop]) {
		return begin, stop
	}
	begin = min(end, at+column)
	stop = run(s, begin, &keySet, end-begin)
	if text := s[begin:stop]; len(text) < 4 || begin > at && keySet.has(s[begin-1]) || lastByte(text) != '=' && !isRandom(text) && !isGibberish(text) {
		return begin, begin
	}
	return begin, stop
}

// isKeyRun reports whether s[begin:stop] is a line of a key, after lines of up to
// full bytes. A short line is the last one and has to look like it.
func isKeyRun(s string, begin, stop, full int) bool {
	n := stop - begin
	if n >= 40 || s[stop-1] == '=' {
		return true
	}
	if stop < len(s) && strings.IndexByte("(.:_", s[stop]) >= 0 {
		return false
	}
	text := s[begin:stop]
	if full >= 40 {
		rest := s[stop:min(len(s), stop+24)]
		return strings.Contains(rest, "----") || isRandom(text) || n >= 16 || strings.TrimLeft(rest, " \t\\nr\"'`+,;)") == ""
	}
	return n >= 12 && shapeOf(text).digit > 0 || strings.HasPrefix(text, "MI")
}

// keyGlue skips what stands between two runs of a key, such as line ends, quotes,
// operators, comment marks and headers. It returns -1 at the end of the key.
func (d *detector) keyGlue(i int) int {
	s := d.s
	for n := 0; i < len(s) && n < 400; n++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte("nrt\n\r\\\"'", s[i+1]) >= 0:
			i += 2
		case strings.IndexByte(" \t\r\n\"'`\\,;#*>|&.()", c) >= 0, c == '/' && strings.HasPrefix(s[i:], "//"), c == '/' && i > 0 && s[i-1] == '/',
			c == '+' && i+1 < len(s) && (spaceSet.has(s[i+1]) || quoteSet.has(s[i+1])):
			i++
		case plain64.has(c):
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

// headerEnd returns the end of a header such as "DEK-Info: ..." at i, or i.
func headerEnd(s string, i int) int {
	name := run(s, i, &wordSet, 24)
	if name+1 >= len(s) || s[name] != ':' || s[name+1] != ' ' || name == i {
		return i
	}
	if escaped := strings.Index(s[name:min(len(s), name+120)], `\n`); escaped > 0 && strings.IndexByte(s[name:name+escaped], '\n') < 0 {
		return name + escaped
	}
	oneWord := s[i:name] == "DEK-Info" || s[i:name] == "Proc-Type"
	if word := run(s, name+2, &notBlank, 64); word < len(s) && s[word] == ' ' && oneWord {
		return word
	}
	return lineEnd(s, name)
}

// keyBackward masks the key that ends before the END line at end. Unless the
// BEGIN line was read, it is the lines above that are base64 to their ends.
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
		if n == 0 && len(text) < 16 && shapeOf(text).digit == 0 && lastByte(text) != '=' && !strings.ContainsAny(d.s[stop:end], "\n\\") {
			return // a word before END, such as the command that writes it
		}
		// Short text right before END may be anything, such as a line number, and
		// a detection without context blocks a request.
		if !d.contextFree || len(text) >= 16 {
			d.report("private-key", "key block", begin, stop)
		}
		end = begin
	}
}

// keyByteBefore reports whether the byte before i is base64 and not glue.
func keyByteBefore(s string, i int) bool {
	c := s[i-1]
	if c == 'n' {
		return i < 2 || s[i-2] != '\\'
	}
	return (c == '+' || c == '/') && i >= 2 && isAlnum(s[i-2])
}

// keyBodyAtCut masks the lines of base64 that a hunk begins with: the middle of
// a block whose BEGIN line is not shown. A block with a public end is left.
func (d *detector) keyBodyAtCut() {
	for _, at := range d.view.sections {
		if d.mayBeKey(at) {
			d.keyBodyAt(at)
		}
	}
}

// mayBeKey is a fast check for base64, a header of a key, or too little to decide.
func (d *detector) mayBeKey(at int) bool {
	begin := run(d.s, at, &keyMargin, maxGap)
	end := run(d.s, begin, &keySet, minKeyLine)
	return end-begin == minKeyLine || end == len(d.s) || strings.IndexByte("\n\r:-", d.s[end]) >= 0
}

func (d *detector) keyBodyAt(at int) {
	for at < len(d.s) { // skip blank lines and headers
		end := lineEnd(d.s, at)
		if strings.TrimSpace(d.s[at:end]) != "" && headerEnd(d.s, at) == at {
			break
		}
		at = end
	}
	var lines []literal
	width := 0
	for at < len(d.s) {
		end := lineEnd(d.s, at)
		begin, stop := keyLine(d.s, at, end)
		n := stop - begin
		if n < minKeyLine && len(lines) == 0 || width > 0 && n > width || n == 0 {
			break
		}
		lines = append(lines, literal{start: begin, end: stop})
		at = end
		if width > 0 && n < width {
			break
		}
		width = n
	}
	rest := d.s[at:min(len(d.s), at+80)]
	endsKey := strings.Contains(rest[:min(len(rest), 60)], "PRIVATE KEY")
	isPublic := containsAny(rest, heads["publicend"])
	if len(lines) == 0 || width < 40 || len(lines) < 2 && !endsKey || isPublic || !isMixedCase(d.text(lines[0])) {
		return
	}
	for _, l := range lines {
		d.report("private-key", "key body", l.start, l.end)
	}
}

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
