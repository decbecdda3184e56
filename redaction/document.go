package redaction

import "strings"

// This file masks secrets in documents: their structure says what is secret.
const (
	documentJWK    = iota // a JSON web key
	documentSecret        // a Secret of Kubernetes
	documentXMLKey        // an RSA key of .NET
	documentVault         // a file encrypted by ansible-vault
	documentKinds
)

// documentMarks are the triggers of the kinds.
var documentMarks = [documentKinds]string{"kty", "kind", "<rsakeyvalue>", "$ansible_vault;"}

// document masks the secrets of the document with the mark s[begin:end].
func (d *detector) document(kind, begin, end int) {
	if d.contextFree || begin < d.documentEnd[kind] {
		return
	}
	switch kind {
	case documentJWK:
		d.jwk(begin, end)
	case documentSecret:
		d.kubernetesSecret(begin, end)
	case documentXMLKey:
		d.xmlKey(end)
	case documentVault:
		d.vault(end)
	}
}

// jwk masks the private members of the object around s[begin:end], its kty.
func (d *detector) jwk(begin, end int) {
	if begin > 0 && isAlnum(d.s[begin-1]) || continuesWord(d.s, end) {
		return
	}
	from := max(0, begin-maxDocument, d.documentEnd[documentJWK])
	open := strings.LastIndexAny(d.s[from:begin], "{\x01")
	if open < 0 || d.s[from+open] != '{' {
		return
	}
	at, stop := from+open, min(len(d.s), end+maxDocument)
	if i := strings.IndexAny(d.s[end:stop], "}\x01"); i >= 0 {
		stop = end + i
	}
	d.documentEnd[documentJWK] = stop
	for at < stop {
		i := strings.IndexAny(d.s[at:stop], `"'`)
		if i < 0 {
			return
		}
		lit, ok := quotedAt(d.s[:stop], at+i)
		if !ok {
			return
		}
		if text := d.text(lit); len(text) >= 16 && allIn(text, &base64Set) && lists["jwk"][d.fieldBefore(lit.start-1)] {
			d.report("private-key", "member of a JSON web key", lit.start, lit.end)
		}
		at = lit.next
	}
}

// fieldBefore returns the name of the field whose value begins at i, or "".
func (d *detector) fieldBefore(i int) string {
	i = runBack(d.s, i, &spaceSet, maxGap)
	if i == 0 || d.s[i-1] != ':' && d.s[i-1] != '=' {
		return ""
	}
	i = runBack(d.s, i-1, &fieldGap, 8)
	return d.s[runBack(d.s, i, &codeIdent, 12):i]
}

// kubernetesSecret masks data and stringData of the manifest with the kind s[begin:end].
func (d *detector) kubernetesSecret(begin, end int) {
	at := run(d.s, end, &kindGap, 6)
	if at == end || !strings.HasPrefix(d.s[at:], "Secret") || continuesWord(d.s, at+len("Secret")) {
		return
	}
	from, stop := max(0, begin-maxDocument, d.documentEnd[documentSecret]), min(len(d.s), end+maxDocument)
	for _, mark := range []string{"\n---", sectionEnd} {
		if i := strings.LastIndex(d.s[from:begin], mark); i >= 0 {
			from += i + len(mark)
		}
		if i := strings.Index(d.s[end:stop], mark); i >= 0 {
			stop = end + i
		}
	}
	d.documentEnd[documentSecret] = stop
	for at := from; at < stop; {
		next := lineEnd(d.s[:stop], at)
		switch name, indent := strings.TrimSpace(d.s[at:next]), skipBlanks(d.s, at)-at; name {
		case "data:", "stringData:":
			next = d.secretData(next, stop, indent)
		default:
			if i := strings.Index(strings.ToLower(name), `data"`); i >= 0 {
				d.secretObject(at + strings.Index(d.s[at:next], name) + i)
			}
		}
		at = next
	}
}

// secretData masks the values of the lines from at on that are indented deeper
// than indent, and returns where they end.
func (d *detector) secretData(at, stop, indent int) int {
	for at < stop {
		next := lineEnd(d.s[:stop], at)
		begin := skipBlanks(d.s, at)
		line := strings.TrimRight(d.s[begin:max(begin, next)], " \t\r\n")
		if line != "" && begin-at <= indent {
			return at
		}
		name, text, ok := strings.Cut(line, ":")
		switch {
		case ok && allIn(name, &keyNameSet):
			v := begin + len(name) + 1
			v += skipBlanks(text, 0)
			if v < begin+len(line) && d.s[v] != '|' && d.s[v] != '>' {
				d.secretValue(v, begin+len(line))
			}
		case len(line) >= 16 && allIn(line, &base64Set):
			d.report("secret", "value of a Secret", begin, begin+len(line))
		}
		at = next
	}
	return at
}

// secretValue masks the value s[begin:end] of a Secret, in quotes or not.
func (d *detector) secretValue(begin, end int) {
	for begin+1 < end && quoteSet.has(d.s[begin]) && d.s[end-1] == d.s[begin] {
		begin, end = begin+1, end-1
	}
	if text := d.s[begin:end]; len(text) >= 3 && !isPlaceholder(text) && !isReference(text) && !isCommonWords(text, 0) && !isSealed(text) {
		d.report("secret", "value of a Secret", begin, end)
	}
}

// secretObject masks the values of the JSON object whose name ends at i.
func (d *detector) secretObject(i int) {
	open := strings.IndexByte(d.s[i:min(len(d.s), i+32)], '{')
	if open < 0 {
		return
	}
	at := i + open
	stop := min(len(d.s), at+maxDocument)
	if end := strings.IndexAny(d.s[at:stop], "}\x01"); end >= 0 {
		stop = at + end
	}
	for at < stop {
		colon := strings.IndexByte(d.s[at:stop], ':')
		if colon < 0 {
			return
		}
		at = run(d.s[:stop], at+colon+1, &spaceSet, maxGap)
		if at >= stop || d.s[at] != '"' {
			continue
		}
		if lit, ok := quotedAt(d.s[:stop], at); ok {
			d.secretValue(lit.start, lit.end)
			at = lit.next
		}
	}
}

// xmlKey masks the private elements of the RSAKeyValue that begins at i.
func (d *detector) xmlKey(i int) {
	stop := min(len(d.s), i+maxDocument)
	if end := strings.Index(d.s[i:stop], "</RSAKeyValue>"); end >= 0 {
		stop = i + end
	}
	d.documentEnd[documentXMLKey] = stop
	for _, name := range []string{"<P>", "<Q>", "<DP>", "<DQ>", "<InverseQ>", "<D>"} {
		at := strings.Index(d.s[i:stop], name)
		if at < 0 {
			continue
		}
		at = run(d.s, i+at+len(name), &spaceSet, maxGap)
		if end := run(d.s, at, &base64Set, maxDocument); end-at >= 16 {
			d.report("private-key", "element of an RSA key", at, end)
		}
	}
}

// vault masks the lines of hex below the head of an ansible-vault file.
func (d *detector) vault(i int) {
	at := lineEndWithin(d.s, i, maxName)
	for at < len(d.s) {
		begin := skipBlanks(d.s, at)
		end := run(d.s, begin, &lowerHex, maxName*2)
		d.documentEnd[documentVault] = end
		if end-begin < 2 || end < len(d.s) && d.s[end] != '\n' && d.s[end] != '\r' {
			return
		}
		d.report("vault", "lines of ansible-vault", begin, end)
		at = lineEndWithin(d.s, end, 2)
	}
}

// nonASCIIName looks for the value of a name that is no ASCII identifier.
func (d *detector) nonASCIIName(index, begin, end int) {
	if !strings.EqualFold(d.s[begin:end], d.names[index].stem) {
		return
	}
	i, _ := skipClosers(d.s, end)
	i = skipBlanks(d.s, i)
	for _, mark := range []string{":", "=>", "=", "：", "是", "为", "は"} {
		if rest, ok := strings.CutPrefix(d.s[i:], mark); ok && rest != "" {
			d.value(nameRef{ident: "password", begin: begin, end: end, strength: strongName, rule: d.names[index].name}, assigned, skipBlanks(d.s, i+len(mark)))
			return
		}
	}
}
