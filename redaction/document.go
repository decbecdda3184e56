package redaction

import "strings"

// Documents in which the place tells of a secret, not the name beside it.
const (
	documentJWK    = iota // a JSON web key
	documentSecret        // a Secret of Kubernetes
	documentXMLKey        // an RSA key of .NET
	documentVault         // what ansible-vault encrypted
	documentKinds
)

// maxDocument bounds how far around its mark a document is read.
const maxDocument = 8 << 10

// document masks the secrets of the document that s[begin:end] is the mark of.
func (d *detector) document(kind, begin, end int) {
	if d.certain || begin < d.documentEnd[kind] {
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

// jwkSecrets are the private members of a JSON web key (RFC 7518, 6.2 to 6.4).
var jwkSecrets = map[string]bool{"d": true, "p": true, "q": true, "dp": true, "dq": true, "qi": true, "k": true}

// jwk masks the private members of the object around s[begin:end], its kty.
func (d *detector) jwk(begin, end int) {
	if begin > 0 && isAlnum(d.s[begin-1]) || end < len(d.s) && isAlnum(d.s[end]) {
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
		if text := d.s[lit.start:lit.end]; len(text) >= 16 && allIn(text, &base64Set) && jwkSecrets[d.fieldBefore(lit.start-1)] {
			d.found("private-key", "member of a JSON web key", lit.start, lit.end)
		}
		at = lit.next
	}
}

// fieldBefore is the name of the field whose value begins at i, or "".
func (d *detector) fieldBefore(i int) string {
	i = runBack(d.s, i, &spaceSet, maxGap)
	if i == 0 || d.s[i-1] != ':' && d.s[i-1] != '=' {
		return ""
	}
	i = runBack(d.s, i-1, &fieldGap, 8)
	return d.s[runBack(d.s, i, &goIdent, 12):i]
}

var fieldGap = setOf(" \t\"'")

// kubernetesSecret masks the values below data and stringData of the manifest
// whose kind is at s[begin:end].
func (d *detector) kubernetesSecret(begin, end int) {
	at := run(d.s, end, &kindGap, 6)
	if at == end || !strings.HasPrefix(d.s[at:], "Secret") || at+6 < len(d.s) && isAlnum(d.s[at+6]) {
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
		switch name, indent := strings.TrimSpace(d.s[at:next]), run(d.s, at, &blankSet, maxGap)-at; name {
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

// kindGap stands between the name of a kind and its value, also in JSON.
var kindGap = setOf("\"': ")

// secretData masks the values of the lines from at that are indented deeper
// than indent, and returns where they end.
func (d *detector) secretData(at, stop, indent int) int {
	for at < stop {
		next := lineEnd(d.s[:stop], at)
		begin := run(d.s, at, &blankSet, maxGap)
		line := strings.TrimRight(d.s[begin:max(begin, next)], " \t\r\n")
		if line != "" && begin-at <= indent {
			return at
		}
		name, text, ok := strings.Cut(line, ":")
		switch {
		case ok && allIn(name, &keyNameSet):
			v := begin + len(name) + 1
			v += run(text, 0, &blankSet, maxGap)
			if v < begin+len(line) && d.s[v] != '|' && d.s[v] != '>' {
				d.datum(v, begin+len(line))
			}
		case len(line) >= 16 && allIn(line, &base64Set):
			d.found("secret", "value of a Secret", begin, begin+len(line))
		}
		at = next
	}
	return at
}

var keyNameSet = setOf(digits, letters, "_-.\"'/ ?")

// datum masks the value s[begin:end] of a Secret, in quotes or not.
func (d *detector) datum(begin, end int) {
	for begin+1 < end && quoteSet.has(d.s[begin]) && d.s[end-1] == d.s[begin] {
		begin, end = begin+1, end-1
	}
	if text := d.s[begin:end]; len(text) >= 3 && !isPlaceholder(text) && !standsFor(text) && !dullWords(text, 0) && !isSealed(text) {
		d.found("secret", "value of a Secret", begin, end)
	}
}

// secretObject masks the values of the object in JSON whose name ends at i.
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
			d.datum(lit.start, lit.end)
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
			d.found("private-key", "element of an RSA key", at, end)
		}
	}
}

// vault masks the lines of hex below the head of an ansible-vault file.
func (d *detector) vault(i int) {
	at := lineEndWithin(d.s, i, maxName)
	for at < len(d.s) {
		begin := run(d.s, at, &blankSet, maxGap)
		end := run(d.s, begin, &lowerHex, maxName*2)
		d.documentEnd[documentVault] = end
		if end-begin < 2 || end < len(d.s) && d.s[end] != '\n' && d.s[end] != '\r' {
			return
		}
		d.found("vault", "lines of ansible-vault", begin, end)
		at = lineEndWithin(d.s, end, 2)
	}
}

// foreignNames are passwords in languages whose letters no identifier has.
var foreignNames = []string{
	"пароль", "Пароль", "ПАРОЛЬ", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호",
	"contraseña", "Contraseña", "hasło", "Hasło", "lösenord", "Lösenord", "şifre", "Şifre", "jelszó", "Jelszó", "mật khẩu", "Mật khẩu",
	"κωδικός", "סיסמה", "كلمة المرور", "mot de passe",
}

// foreign looks at what is assigned to a name that is no ASCII word.
func (d *detector) foreign(word string, begin, end int) {
	if d.s[begin:end] != word && !strings.EqualFold(d.s[begin:end], word) {
		return
	}
	i, _ := closers(d.s, end)
	i = gap(d.s, i)
	for _, mark := range []string{":", "=>", "=", "：", "是", "为", "は"} {
		if rest, ok := strings.CutPrefix(d.s[i:], mark); ok && rest != "" {
			at := gap(d.s, i+len(mark))
			d.value(nameRef{ident: "password", begin: begin, end: end, strength: strongName}, assigned, at)
			return
		}
	}
}
