package redaction

import (
	"regexp"
	"strings"
)

// A block is a structure that no line describes, such as a key or a document. read masks
// the secrets of the block around its trigger s[begin:end], but nothing before after, the
// end of the last block of the kind. It returns the end of the block, up to which the
// kind is not read again.
type block struct {
	begins      []string
	contextFree bool
	read        func(d *detector, after, begin, end int) int
}

var blocks = []block{
	{[]string{"-----begin", "---- begin", "----end"}, true, (*detector).pem},
	{[]string{"private-lines:"}, false, (*detector).putty},
	{[]string{"kty", "<rsakeyvalue>"}, false, (*detector).keyMembers},
	{[]string{"kind"}, false, (*detector).kubernetesSecret},
}

// block reads the block with the trigger s[begin:end].
func (d *detector) block(kind, begin, end int) {
	if begin >= d.blockEnds[kind] {
		d.blockEnds[kind] = blocks[kind].read(d, d.blockEnds[kind], begin, end)
	}
}

// keyMembers masks the base64 behind the names of private members of a JSON web key, whose
// kty is s[begin:end], or of an RSAKeyValue in XML.
func (d *detector) keyMembers(after, begin, end int) int {
	if d.s[begin] != '<' && (isAlnum(byteAt(d.s, begin-1)) || continuesWord(d.s, end)) {
		return end
	}
	at := max(after, begin-maxDocument)
	at += strings.LastIndexAny(d.s[at:begin], "{\x01") + 1
	stop := end + indexAnyWithin(d.s[end:], "}\x01", maxDocument)
	for ; at < stop; at++ {
		next := run(d.s, at, &base64Set, stop-at)
		if next-at >= 16 && lists["keymember"][d.fieldBefore(at)] {
			d.report("private-key", "member of a key", at, next)
		}
		at = next
	}
	return stop
}

// indexAnyWithin returns the offset of the first of chars in the first n bytes of s,
// or the end of these bytes.
func indexAnyWithin(s, chars string, n int) int {
	s = s[:min(len(s), n)]
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

// fieldBefore returns the name of the field or element whose value begins at i, or "".
func (d *detector) fieldBefore(i int) string {
	end := runBack(d.s, i, &fieldGap, maxGap)
	if !strings.ContainsAny(d.s[end:i], ":=>") {
		return ""
	}
	return d.s[runBack(d.s, end, &codeIdent, 12):end]
}

// kubernetesSecret masks data and stringData of the manifest with the kind s[begin:end].
func (d *detector) kubernetesSecret(after, begin, end int) int {
	at := run(d.s, end, &kindGap, 6)
	if at == end || !strings.HasPrefix(d.s[at:], "Secret") || continuesWord(d.s, at+len("Secret")) {
		return end
	}
	begin = runBack(d.s, begin, &quoteSet, 1)
	column := begin - lineBegin(d.s, begin)
	head := strings.TrimRight(d.s[begin-column:begin], " ")
	if head != "" && strings.IndexByte("-{,", lastByte(head)) < 0 || strings.Contains(head, "#") {
		return end // a comment or a value
	}
	from, stop := max(after, begin-maxDocument), min(len(d.s), end+maxDocument)
	for _, mark := range []string{"\n---", sectionEnd} {
		if i := strings.LastIndex(d.s[from:begin], mark); i >= 0 {
			from += i + len(mark)
		}
		if i := strings.Index(d.s[end:stop], mark); i >= 0 {
			stop = end + i
		}
	}
	data, scalar := -1, -1 // the indentation of data and of a block scalar, if the line is below it
	for at, next := from, 0; at < stop; at = next {
		next = lineEnd(d.s[:stop], at)
		begin := run(d.s[:next], at, &spaceSet, next-at)
		line := strings.TrimSpace(d.s[begin:next])
		code, _, _ := strings.Cut(line, " #")
		switch name := strings.ToLower(strings.TrimRight(code, ": {")); {
		case line == "" || line[0] == '#':
		case scalar >= 0 && begin-at > scalar:
			d.report("secret", "value of a Secret", begin, begin+len(line))
		case data >= 0 && begin-at > data:
			scalar = -1
			if strings.HasSuffix(strings.TrimRight(code, " +-"), "|") || strings.HasSuffix(strings.TrimRight(code, " +-"), ">") {
				scalar = begin - at
			}
			d.secretLine(begin, begin+len(line))
		case code != name && secretData[strings.Trim(name, `"`)] && begin-at == column:
			data, scalar = begin-at, -1
		default:
			data, scalar = -1, -1
			d.secretMembers(begin, next)
		}
	}
	return stop
}

// secretData are the members of a Secret that hold its values.
var secretData = map[string]bool{"data": true, "stringdata": true}

var (
	dataObject  = regexp.MustCompile(`(?i)(?:"(?:string)?data"|^(?:string)?data) *: *\{[^{}]*`)
	memberValue = regexp.MustCompile(`: *(?:"((?:[^"\\]|\\.)*)"|([^ "{},\[\]\n][^,}\n]*))`)
)

// secretMembers masks the values of data and stringData in the line s[at:stop] of JSON, as
// kubectl writes it into annotations.
func (d *detector) secretMembers(at, stop int) {
	for _, object := range dataObject.FindAllStringIndex(d.s[at:stop], -1) {
		from := at + object[0]
		for _, m := range memberValue.FindAllStringSubmatchIndex(d.s[from:at+object[1]], -1) {
			i := 2
			if m[i] < 0 {
				i = 4 // without quotes
			}
			d.secretValue(from+m[i], from+m[i+1])
		}
	}
}

// secretLine masks the value behind the name in the line s[at:stop], or a line without
// a name, which continues a value in base64.
func (d *detector) secretLine(at, stop int) {
	name, text, ok := strings.Cut(d.s[at:stop], ":")
	if !ok && len(name) >= 16 && allIn(name, &base64Set) {
		d.report("secret", "value of a Secret", at, stop)
	}
	lit := trimLiteral(d.s, literal{start: stop - len(text), end: stop})
	if lit.start < stop && quoteSet.has(d.s[lit.start]) {
		lit, _ = quotedAt(d.s[:stop], lit.start)
	}
	if ok && allIn(name, &keyNameSet) {
		d.secretValue(lit.start, lit.end)
	}
}

// secretValue masks the value s[begin:end] of a Secret.
func (d *detector) secretValue(begin, end int) {
	if text := d.s[begin:end]; len(text) >= 3 && !d.isPlaceholder(text) && !isReference(text) && !isCommonWords(text, 0) {
		d.report("secret", "value of a Secret", begin, end)
	}
}

// nonASCIIName looks for the value of a name that is no ASCII identifier.
func (d *detector) nonASCIIName(index, begin, end int) {
	if n := d.names[index]; strings.EqualFold(d.s[begin:end], n.stem) {
		d.matchForms(nameRef{ident: "password", begin: begin, end: end, strength: strongName, rule: n.name})
	}
}
