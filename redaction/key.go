package redaction

import "strings"

// This file masks private keys in PEM, PGP and PuTTY files, also cut off, quoted,
// escaped, commented, joined or logged, and base64 that is known to be a key by how
// it begins. A key is read as pieces of base64, usually one per line.

// pem masks the key with the BEGIN or END line of the trigger. A hunk may show only
// one of the two.
func (d *detector) pem(_, begin, end int) int {
	labelEnd := run(d.s, end, &labelSet, 80)
	label := strings.NewReplacer("%20", " ", "+", " ").Replace(d.s[end:labelEnd])
	switch {
	case !strings.Contains(strings.ToUpper(label), "PRIVATE"):
	case strings.EqualFold(d.s[end-len("END"):end], "END"):
		for _, p := range d.keyPiecesBefore(runBack(d.s, begin, &dashSet, 8)) {
			// Short text right before END may be anything, such as a line number, and
			// a detection without context blocks a request.
			if !d.contextFree || p.end-p.start >= 16 {
				d.report("private-key", "key block", p.start, p.end)
			}
		}
	default:
		d.key("key block", run(d.s, labelEnd, &dashSet, 8))
	}
	return end
}

// key masks the key that begins after i, and returns its end.
func (d *detector) key(rule string, i int) int {
	if i < d.keyEnd {
		return i
	}
	d.keyEnd = i
	for _, p := range d.keyPieces(i) {
		d.report("private-key", rule, p.start, p.end)
		d.keyEnd = p.end
	}
	d.nameEnd = max(d.nameEnd, d.keyEnd)
	return d.keyEnd
}

// keyPieces returns the pieces of the key that begins after i. Only marks stand
// between two pieces, or each piece stands in a line that has something else before
// it: the time of a log, a number, a command that writes it.
func (d *detector) keyPieces(i int) (pieces []literal) {
	s := d.s[:min(len(d.s), i+maxKey)]
	column := max(0, strings.LastIndex(s[lineBegin(s, i):i], "-----BEGIN"))
	inLines := false
	for width := 0; ; {
		p, ok := literal{}, false
		if !inLines {
			p, ok = pieceAfter(s, i, width)
		}
		if !ok && (inLines || width == 0) {
			p, ok = pieceInLines(s, lineEndWithin(s, i, maxKeyLine), column)
			inLines = true
		}
		if !ok {
			return pieces
		}
		pieces = append(pieces, p)
		if n := p.end - p.start; n < width && width >= 40 {
			return pieces // only the last line is short
		} else if n > width {
			width = n
		}
		i = p.end
	}
}

// pieceAfter returns the piece after the marks at i. The pieces before have up to
// width bytes. A short piece is the last one and has to look like it.
func pieceAfter(s string, i, width int) (p literal, ok bool) {
	p.start = skipGlue(s, i)
	end := run(s, p.start, &plain64, maxKey)
	p.end = run(s, end, &equals, 4)
	text, n := s[p.start:p.end], p.end-p.start
	switch {
	case end == p.start:
		return p, false
	case n >= 40 || p.end > end:
		p.end = skipWord(s, p.end, "...") // cut short by its author
		return p, true
	case strings.IndexByte("(.:_", byteAt(s, end)) >= 0:
		return p, false
	case width < 40:
		return p, n >= 12 && shapeOf(text).digit > 0 || strings.HasPrefix(text, "MI")
	}
	rest := s[end:min(len(s), end+24)]
	return p, n >= 16 || isRandom(text) || strings.Contains(rest, "----") || strings.TrimLeft(rest, " \t\\nr\"'`+,;)") == ""
}

// skipGlue skips what stands between two pieces of a key: line ends, also escaped,
// quotes, operators, comment marks and headers.
func skipGlue(s string, i int) int {
	for limit := min(len(s), i+400); i < limit; {
		switch c := s[i]; {
		case c == '\\' && i+1 < limit:
			i += 2
		case glueSet.has(c), isMark(s, i):
			i++
		default:
			end := headerEnd(s, i)
			if end == i {
				return i
			}
			i = end
		}
	}
	return min(i, len(s))
}

// isMark reports whether the byte at i, which may be base64, joins two literals or
// begins a comment.
func isMark(s string, i int) bool {
	return s[i] == '+' && !plain64.has(byteAt(s, i+1)) || s[i] == '/' && (byteAt(s, i+1) == '/' || byteAt(s, i-1) == '/')
}

// headerEnd returns the end of a header such as "DEK-Info: ..." at i, or i.
func headerEnd(s string, i int) int {
	name := run(s, i, &wordSet, 24)
	if name == i || !strings.HasPrefix(s[name:], ": ") {
		return i
	}
	line := s[name:lineEndWithin(s, name, 120)]
	if escaped := strings.Index(line, `\n`); escaped > 0 {
		return name + escaped
	}
	if word := run(s, name+2, &notBlank, 64); byteAt(s, word) == ' ' && containsAny(s[i:name+2], heads["keyheader"][:2]) {
		return word
	}
	return lineEnd(s, name)
}

// pieceInLines returns the piece in the line at i, or below blank lines and headers.
func pieceInLines(s string, i, column int) (p literal, ok bool) {
	for n := 0; n < 8 && i < len(s); n++ {
		end := lineEndWithin(s, i, maxKeyLine)
		line := s[i:end]
		if strings.Contains(line, "-----END") {
			break
		}
		if p, ok = pieceIn(s, i, end, column); ok || strings.TrimSpace(line) != "" && !containsAny(line, heads["keyheader"]) {
			return p, ok
		}
		i = end
	}
	return p, false
}

// pieceIn returns the piece in the line s[at:end]: its longest run of base64, or a
// short run that begins in the given column, the last line of a key.
func pieceIn(s string, at, end, column int) (p literal, ok bool) {
	for i := at; i < end; i++ {
		next := run(s, i, &keySet, end-i)
		if next-i > p.end-p.start {
			p = literal{start: i, end: next}
		}
		i = next
	}
	if p.end-p.start >= 40 && isMixedCase(s[p.start:p.end]) {
		return p, true
	}
	p.start = min(end, at+column)
	p.end = run(s, p.start, &keySet, end-p.start)
	text := s[p.start:p.end]
	return p, len(text) >= 4 && (p.start == at || !keySet.has(s[p.start-1])) && (lastByte(text) == '=' || isRandom(text) || isGibberish(text))
}

// keyPiecesBefore returns the pieces of the key that ends before the END line at end,
// down to what was read, the last one first: on its line, and on the lines above that
// have some. The last piece may be short; what stands between pieces and is shorter than
// the others is the time of a log, a number, a command.
func (d *detector) keyPiecesBefore(end int) (pieces []literal) {
	least := max(d.keyEnd, end-maxKey)
	begin, next := max(least, lineBegin(d.s, end)), end // next is where the piece behind begins
	for stop := end; ; stop, begin = begin, max(least, lineBegin(d.s, begin-1)) {
		count := len(pieces)
		for i := stop; i > begin; i-- {
			p := literal{start: runBack(d.s, i, &keySet, i-begin), end: i}
			if p.start > begin && p.start < i && d.s[p.start-1] == '\\' {
				p.start++ // after \n
			}
			text, gap := d.s[p.start:p.end], d.s[p.end:stop]
			isLast := len(pieces) == 0 && len(text) >= 4 && distinct(text) > 1 && strings.TrimLeft(gap, " \t\r\n\\\"'`,+") == "" &&
				(strings.ContainsAny(gap, "\n\\") || gap == "" && hasDigit(text) || lastByte(text) == '=')
			if len(text) >= 40 || len(text) >= 16 && hasDigit(text) || isLast {
				if containsAny(d.s[p.end:next], []string{placeholderHead, "-----", "..."}) {
					return pieces
				}
				pieces, next = append(pieces, p), p.start
			}
			i = min(i, p.start)
		}
		if len(pieces) == count && stop < end || begin <= least {
			return pieces
		}
	}
}

// keyBodies masks the lines of base64 that a hunk begins with: the middle of a
// block whose BEGIN line is not shown. A block with a public end is left.
func (d *detector) keyBodies() {
	for _, at := range d.view.sections {
		first := skipGlue(d.s, at)
		width := run(d.s, first, &keySet, maxKeyLine) - first
		if width < 40 || !isMixedCase(d.s[first:first+width]) {
			continue
		}
		pieces := d.keyPieces(at)
		if len(pieces) == 0 {
			continue
		}
		final := pieces[len(pieces)-1].end
		rest := d.s[final:min(len(d.s), final+80)]
		if containsAny(rest, heads["publicend"]) || len(pieces) < 2 && !strings.Contains(rest, "PRIVATE KEY") {
			continue
		}
		for i, p := range pieces {
			if p.end-p.start > width || i > 0 && !strings.Contains(d.s[pieces[i-1].end:p.start], "\n") {
				break
			}
			d.report("private-key", "key body", p.start, p.end)
		}
	}
}

// putty masks the private lines of a PuTTY key file, whose number begins at i.
func (d *detector) putty(_, _, i int) int {
	return d.key("putty key", lineEndWithin(d.s, i, maxName))
}
