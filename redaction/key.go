package redaction

import "strings"

// This file masks private keys in PEM, PGP and PuTTY files, also cut off, quoted,
// escaped, commented, joined or logged. A key is read as pieces of base64, usually one
// per line.

// pem masks the key with the BEGIN or END line of the trigger. A hunk may show only
// one of the two.
func (d *detector) pem(_, begin, end int) int {
	labelEnd := run(d.s, end, &labelSet, 80)
	label := strings.NewReplacer("%20", " ", "+", " ").Replace(d.s[end:labelEnd])
	switch {
	case !strings.Contains(strings.ToUpper(label), "PRIVATE"):
	case strings.EqualFold(d.s[end-len("END"):end], "END"):
		d.key("key block", d.keyBegin(begin))
		d.keyEnd = max(d.keyEnd, begin)
	default:
		d.key("key block", run(d.s, labelEnd, &dashSet, 8))
	}
	return end
}

// keyBegin returns where the first line of the key begins that ends before the END line
// at end: the lines above, down to what was read, as long as they have long pieces.
func (d *detector) keyBegin(end int) int {
	least := max(d.keyEnd, end-maxKey)
	at := max(least, lineBegin(d.s, max(0, lineBegin(d.s, end)-1)))
	for at > least {
		begin := max(least, lineBegin(d.s, at-1))
		if !hasLongRun(d.s[begin:at]) {
			break
		}
		at = begin
	}
	return at
}

// hasLongRun reports whether a line has a piece of a key that is not the last one.
func hasLongRun(line string) bool {
	for i := 0; i < len(line); i++ {
		end := run(line, i, &keySet, len(line))
		if end-i >= 40 || end-i >= 16 && hasDigit(line[i:end]) {
			return true
		}
		i = end
	}
	return false
}

// key masks the key that begins after i, and returns its end.
func (d *detector) key(rule string, i int) int {
	if i < d.keyEnd {
		return i
	}
	d.keyEnd = i
	for _, p := range keyPieces(d.s, i) {
		// Short text before END may be anything, such as a line number, and a detection
		// without context blocks a request.
		if !d.contextFree || p.end-p.start >= 16 {
			d.report("private-key", rule, p.start, p.end)
		}
		d.keyEnd = p.end
	}
	d.nameEnd = max(d.nameEnd, d.keyEnd)
	return d.keyEnd
}

// keyPieces returns the pieces of the key that begins after i. Between two pieces are
// marks, or each piece is on a line with something else before it: the time of a log, a
// number, a command that writes it.
func keyPieces(s string, i int) (pieces []literal) {
	s = s[:min(len(s), i+maxKey)]
	width, line, found := 0, i, true // found is set if the line is one of a key
	glued := true                    // only marks are before s[at] in its line, or behind the piece before
	for at, last := i, i; at < len(s) && at-last < maxKeyLine; {
		switch c := s[at]; {
		case c == '\n':
			text := s[line:at]
			if !found && strings.TrimSpace(text) != "" && !containsAny(text, heads["keyheader"]) {
				return pieces
			}
			line, found, glued = at+1, false, true
			at++
		case c == sectionEnd[1], c == '-' && strings.HasPrefix(s[at:], "-----"):
			return pieces
		case keySet.has(c):
			p := literal{start: at, end: run(s, at, &keySet, maxKey)}
			n := p.end - p.start
			at = p.end
			if !isPiece(s, p, glued, width) {
				glued = glued && strings.Trim(s[p.start:p.end], "+/") == ""
				continue
			}
			p.end = skipWord(s, p.end, "...") // cut short by its author
			pieces = append(pieces, p)
			if n < width && width >= 40 {
				return pieces // only the last line is short
			}
			width, last, found, glued = max(width, n), at, true, true
		case c == '\\':
			at += 2
		default:
			glued = glued && glueSet.has(c)
			at++
		}
	}
	return pieces
}

// isPiece reports whether the base64 p is a piece of a key, whose pieces before have up to
// width bytes. A short one is the last one and has to look like it.
func isPiece(s string, p literal, glued bool, width int) bool {
	text, n := s[p.start:p.end], p.end-p.start
	switch {
	case strings.Contains(strings.TrimRight(text, "="), "="): // an assignment
		return false
	case n >= 40:
		return glued || isMixedCase(text)
	case strings.IndexByte("(.:_", byteAt(s, p.end)) >= 0:
		return false
	case n >= 4 && distinct(text) > 1 && endsKey(s, p):
		return true
	case !glued:
		return false
	case width < 40:
		return n >= 12 && hasDigit(text) || strings.HasPrefix(text, "MI")
	}
	return n >= 16 || isRandom(text)
}

// endsKey reports whether p is the last piece: the END line follows, behind a line end, which
// may be escaped, or padding.
func endsKey(s string, p literal) bool {
	rest, next := skipGlue(s, p.end), lineEndWithin(s, p.end, maxGap)
	padded := s[p.end-1] == '='
	if strings.HasPrefix(s[rest:], "-----") {
		return padded || strings.ContainsAny(s[p.end:rest], "\n\\") || p.end == rest && hasDigit(s[p.start:p.end])
	}
	return (padded || rest >= next) && strings.Contains(s[next:lineEndWithin(s, next, maxKeyLine)], "-----END")
}

// skipGlue skips the text between two pieces of a key: line ends, also escaped, quotes,
// operators, comment marks.
func skipGlue(s string, i int) int {
	for limit := min(len(s), i+400); i < limit && (s[i] == '\\' || glueSet.has(s[i]) || s[i] == '+' || s[i] == '/'); i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return min(i, len(s))
}

// keyBodies masks the lines of base64 that a hunk begins with: the middle of a
// block whose BEGIN line is not shown. A block with a public end is left.
func (d *detector) keyBodies() {
	for _, at := range d.view.sections {
		for containsAny(d.s[at:lineEndWithin(d.s, at, maxKeyLine)], heads["keyheader"]) {
			at = lineEndWithin(d.s, at, maxKeyLine)
		}
		first := skipGlue(d.s, at)
		width := run(d.s, first, &keySet, maxKeyLine) - first
		if width < 40 || !isMixedCase(d.s[first:first+width]) {
			continue
		}
		pieces := keyPieces(d.s, at)
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
