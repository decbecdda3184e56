package redaction

import (
	"encoding/base64"
	"strings"
)

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
		stop := runBack(d.s, begin, &dashSet, 8)
		pieces, _ := d.keyPieces(d.keyBefore(stop))
		for _, p := range pieces {
			// Short text right before END may be anything, such as a line number, and
			// a detection without context blocks a request.
			if p.end <= stop && (!d.contextFree || p.end-p.start >= 16) {
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
	pieces, end := d.keyPieces(i)
	d.keyEnd = end
	for _, p := range pieces {
		d.report("private-key", rule, p.start, p.end)
		d.keyEnd = p.end
	}
	d.nameEnd = max(d.nameEnd, d.keyEnd)
	return d.keyEnd
}

// keyPieces returns the pieces of base64 of the key that begins after i. Each stands
// alone in its line but for marks, or behind something else: the time of a log, a
// number, a command that writes it. Lines without a piece, such as headers, stand
// before the first one only. end is how far the text was read.
//
// Bound: the text of the key, and up to maxKeyHead bytes behind it.
func (d *detector) keyPieces(i int) (pieces []literal, end int) {
	s := d.s[:min(len(d.s), i+maxKey)]
	r := keyReader{line: lineBegin(s, i), alone: true}
	r.column = max(0, strings.LastIndex(s[r.line:i], "-----BEGIN"))
	for last := i; i < len(s) && i-last < maxKeyHead; {
		switch c := s[i]; {
		case c == '\n' && len(pieces) > 0 && !r.found && !r.alone:
			return pieces, i
		case c == '\n':
			i++
			r.line, r.alone, r.found = i, true, false
		case c == '\\':
			i, r.alone = i+2, true
		case c == '\x01', strings.HasPrefix(s[i:], "-----"), r.ended && c != '=' && keySet.has(c):
			return pieces, i
		case !keySet.has(c), isMark(s, i):
			r.alone = r.alone && glueSet.has(c) || isMark(s, i)
			i++
		default:
			p := literal{start: i, end: run(s, i, &keySet, maxKey)}
			i = p.end
			if !r.takes(s, p) {
				r.alone = false
				continue
			}
			p.end = skipWord(s, p.end, "...") // cut short by its author
			pieces = append(pieces, p)
			r.ended = p.end-p.start < r.width && r.width >= minKeyPiece // only the last line is short
			r.width = max(r.width, p.end-p.start)
			last, r.column, r.found = i, p.start-r.line, true
		}
	}
	return pieces, i
}

// A keyReader is the state of keyPieces.
type keyReader struct {
	line, column int  // where the line begins, and in it the last piece
	alone        bool // only marks are before i in its line
	found, ended bool // a piece in the line, the last line but for the checksum of PGP
	width        int  // of the longest piece
}

// takes reports whether p is a piece of the key.
func (r *keyReader) takes(s string, p literal) bool {
	text := s[p.start:p.end]
	switch {
	case len(text) >= minKeyPiece, text[0] == '=':
		return r.alone || isMixedCase(text)
	case !r.alone && (p.start-r.line != r.column || r.width == 0), strings.IndexByte("(.:_", byteAt(s, p.end)) >= 0:
		return false
	case r.width < minKeyPiece:
		return len(text) >= 12 && shapeOf(text).digit > 0 || strings.HasPrefix(text, "MI")
	}
	rest := strings.TrimLeft(s[p.end:min(len(s), p.end+24)], " \t\\nr\"'`+,;)")
	return len(text) >= 16 || isRandom(text) || lastByte(text) == '=' || strings.HasPrefix(rest, "----") || r.alone && rest == ""
}

// isMark reports whether the byte at i, which may be base64, joins two literals or
// begins a comment.
func isMark(s string, i int) bool {
	return s[i] == '+' && !plain64.has(byteAt(s, i+1)) || s[i] == '/' && (byteAt(s, i+1) == '/' || byteAt(s, i-1) == '/')
}

// keyBefore returns where the lines of the key begin that ends at the END line at end:
// behind what was read, or behind the last line without a piece.
func (d *detector) keyBefore(end int) int {
	least := max(d.keyEnd, end-maxKey)
	begin := max(least, lineBegin(d.s, end))
	for lines := 0; begin > least; lines++ {
		before := max(least, lineBegin(d.s, begin-1))
		if lines > 0 && !hasPiece(d.s[before:begin]) {
			break
		}
		begin = before
	}
	return begin
}

// hasPiece reports whether a line has a long run of base64.
func hasPiece(line string) bool {
	for i := 0; i < len(line); i++ {
		end := run(line, i, &keySet, len(line))
		if end-i >= minKeyPiece {
			return true
		}
		i = end
	}
	return false
}

// keyBodies masks the lines of base64 that a hunk begins with: the middle of a
// block whose BEGIN line is not shown. A block with a public end is left.
func (d *detector) keyBodies() {
	for _, at := range d.view.sections {
		first := run(d.s, at, &glueSet, maxGap)
		width := run(d.s, first, &keySet, maxKeyLine) - first
		if (width < minKeyPiece || !isMixedCase(d.s[first:first+width])) && !beginsWith(d.s[first:], heads["keyheader"]) {
			continue
		}
		pieces, _ := d.keyPieces(at)
		if len(pieces) == 0 {
			continue
		}
		width = max(width, pieces[0].end-pieces[0].start)
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

// keyHeads begin private keys and stores of keys without a BEGIN line, in base64. In
// DER the content of a sequence of up to 64 kB begins with the version, and for PKCS 8
// the algorithm.
var keyHeads = []string{
	"IBAzCC", "IBADANBgkqhkiG9w0BAQEFAAS", "IBAAKC", // PKCS 12, PKCS 8 and PKCS 1 for RSA, behind the length
	"MHcCAQEEI", "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg", // SEC 1 and PKCS 8 for P-256
	"MC4CAQAwBQYDK2VwBCIEI", // PKCS 8 for Ed25519
	"/u3+7QAAAA",            // a Java key store
}

// bareKey masks the base64 of a key or of a store of keys that begins with one of
// keyHeads at i.
func (d *detector) bareKey(_, i, end int) int {
	if i >= len("MIIEvQ") && beginsWith(d.s[i:], keyHeads[:3]) && strings.HasPrefix(d.s[i-len("MIIEvQ"):], "MII") {
		i -= len("MIIEvQ")
	} else if !beginsWith(d.s[i:], keyHeads[3:]) {
		return end
	}
	stop := run(d.s, i, &keySet, maxKey)
	if i < d.keyEnd || stop-i < minStore || plain64.has(byteAt(d.s, i-1)) {
		return end
	}
	// After a BEGIN line, the label of the block decides.
	if before := strings.TrimRight(d.s[max(0, i-maxGap):i], " \t\r\n\"'`+\\n"); strings.HasSuffix(before, "-----") {
		return end
	}
	d.report("private-key", "key without armour", i, stop)
	if stop-i <= maxKeyWidth { // the first of several lines
		return d.key("key without armour", i)
	}
	d.keyEnd = stop
	return stop
}

// pemBase64 is the base64 of "-----BEGI".
const pemBase64 = "LS0tLS1CRUdJ"

// pemInBase64 masks base64 of a PEM block unless the block is a public one.
func (d *detector) pemInBase64(_, begin, end int) int {
	if !strings.HasPrefix(d.s[begin:], pemBase64) {
		return end
	}
	stop := run(d.s, begin, &base64Set, maxKey)
	head := d.s[begin:min(stop, begin+64)]
	if label, err := base64.StdEncoding.DecodeString(head[:len(head)&^3]); err != nil || strings.Contains(string(label), "PRIVATE") {
		d.report("private-key", "key block in base64", begin, stop)
	}
	return stop
}
