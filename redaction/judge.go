package redaction

import (
	"strconv"
	"strings"
)

// isSecret decides whether text, tied to the name n by l, is a secret. What it
// lets go must be plainly something else; what a name promises strongly needs
// no more than not to be that.
func (d *detector) isSecret(n nameRef, l link, lit literal, text string) bool {
	if len(text) < 3 || isPlaceholder(text) || standsFor(text) || strings.EqualFold(text, n.ident) || byteEscapes(text) || isFloat(text) {
		return false
	}
	if lit.quoted && len(text) > 200 && n.strength < strongName && strings.ContainsAny(text, " <>") {
		return false
	}
	switch n.strength {
	case strongName:
		return d.strongValue(n, l, lit, text)
	case mediumName:
		return d.mediumValue(n, l, lit, text)
	case weakName:
		return d.weakValue(l, lit, text)
	}
	return vendorValue(l, text)
}

func (d *detector) strongValue(n nameRef, l link, lit literal, text string) bool {
	if dullWords(text, 1) || isPath(text) || isProse(text) {
		return false
	}
	if isUUID(text) {
		return l != compared && l != listed && l != called
	}
	if lit.quoted {
		return !isSource(text) && (l != called || !asks(n.ident)) && (l != spaced || d.spacedQuote(n, lit)) && (l != listed || !gibberishFree(text))
	}
	switch l {
	case stated:
		return statedSecret(text)
	case spaced:
		return d.spacedBare(n, lit, text)
	case element:
		return true
	}
	return d.bareSecret(n, lit, text, false)
}

func (d *detector) mediumValue(n nameRef, l link, lit literal, text string) bool {
	if dullWords(text, 2) || isPath(text) || isProse(text) || isSource(text) || l == called && asks(n.ident) {
		return false
	}
	likely := random(text) || keyLike(text) || lit.quoted && holdsKey(text) || isUUID(text) || len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !isIdentifier(text)
	if lit.quoted {
		return likely && (l != spaced || d.spacedQuote(n, lit) || veryRandom(text))
	}
	switch l {
	case stated, fallback, paired, nextLine, element:
		return likely && shapeOf(text).digit > 0
	case spaced:
		return likely && (isFlag(d.s, n.begin) && shapeOf(text).digit > 0 || veryRandom(text))
	}
	return likely && d.bareSecret(n, lit, text, true)
}

func (d *detector) weakValue(l link, lit literal, text string) bool {
	if isSource(text) || isPath(text) || isUUID(text) || isNumber(text) || isHash(text) && !lit.quoted && l != assigned && l != stated && l != spaced {
		return false
	}
	if encodesPair(text) && len(text) >= 12 {
		return true
	}
	return (veryRandom(text) || keyLike(text) && isKeyLength(len(text))) && (lit.quoted || shapeOf(text).other <= len(text)/6)
}

func vendorValue(l link, text string) bool {
	if isSource(text) || isPath(text) || l == compared {
		return false
	}
	return keyLike(text) || isUUID(text) || len(text) >= 14 && random(text) && shapeOf(text).other == 0
}

// spacedQuote reports whether a quoted text after a name and a blank is its
// value: in SQL, in a command line, in some languages of configuration.
func (d *detector) spacedQuote(n nameRef, lit literal) bool {
	if isFlag(d.s, n.begin) {
		return true
	}
	// In prose and code, a name and a literal that follow one another have
	// little to do with each other.
	return n.strength == strongName && !strings.EqualFold(n.ident, "pass") && lit.next-lit.start < 80 && !strings.ContainsAny(d.s[n.begin:n.end], ".")
}

// spacedBare knows the values of flags and of the lines of netrc files.
func (d *detector) spacedBare(n nameRef, lit literal, text string) bool {
	if keyLike(text) {
		return true
	}
	if isFlag(d.s, n.begin) {
		return !strings.HasPrefix(text, "-") && !isSource(text)
	}
	line := strings.ToLower(d.s[lineBegin(d.s, n.begin):n.begin])
	if strings.Contains(line, "login ") || strings.Contains(line, "machine ") || strings.HasSuffix(line, "identified by ") {
		return true
	}
	return false
}

// bareSecret tells a value of configuration from a name of code.
func (d *detector) bareSecret(n nameRef, lit literal, text string, likely bool) bool {
	s := d.s
	if isSource(text) || isNumber(text) || isSum(text) || strings.IndexByte("&*@:-!^#", text[0]) >= 0 && !random(text) {
		return false
	}
	after := byte('\n')
	if i := gap(s, lit.end); i < len(s) {
		after = s[i]
	}
	if after == ';' && inConnectionString(s, lit.end) {
		return true
	}
	if after == '(' || after == '{' || lit.end < len(s) && (s[lit.end] == '[' || s[lit.end] == '.') {
		return false
	}
	if isIdentifier(text) {
		words := splitWords(text)
		if (shapeOf(text).digit == 0 || wordy(text)) && (d.namesSecret(text) || len(words) > 1 && lists["lookup"][words[0]] && !gibberish(text)) {
			return false
		}
		if after == ',' || after == ';' || after == ')' {
			return random(text) && (shapeOf(text).digit > 1 || len(words) == 1 && gibberish(text))
		}
		if !likely && shapeOf(text).digit == 0 {
			return after == '\n' || after == '\r' || after == '\\' || after == '-' || after == '#' || after == '&' || after == '}' || after == '"' || after == '\'' || after == '`' || isFlag(s, n.begin) || gibberish(text)
		}
	}
	return true
}

// isSum reports whether text is an expression of names and numbers.
func isSum(text string) bool {
	if !strings.ContainsAny(text, "*+/%") || last(text) == '=' || gibberish(text) || len(text) >= 40 || veryRandom(text) || keyLike(text) {
		return false
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("*+/%()", r) }) {
		if !isNumber(part) && !isChain(part) {
			return false
		}
	}
	return true
}

// byteEscapes reports whether text is little more than escapes of bytes.
func byteEscapes(text string) bool {
	return strings.Count(text, `\x`)*4+strings.Count(text, `\u`)*6+strings.Count(text, `\U`)*10+3 >= len(text)
}

// isNumber reports whether text is a small number or a hexadecimal constant.
func isNumber(text string) bool {
	return isFloat(text) || len(text) < 6 && isDigit(text[0]) && allIn(text, &numberSet) || (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "-0x")) && len(text) <= 20 && allIn(text[3:], &numberSet)
}

func isFloat(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && strings.ContainsAny(text, ".")
}

var numberSet = setOf(digits, ".xXabcdefABCDEF_")

// namesSecret reports whether an identifier speaks of a secret itself: the
// name of a variable, not a value.
func (d *detector) namesSecret(ident string) bool { return d.strengthOf(ident) >= weakName }

// isPlaceholder reports whether text is one or more of our own placeholders
// and nothing else that counts.
func isPlaceholder(text string) bool {
	rest := 0
	for i := 0; i < len(text); {
		if n := placeholderLen(text[i:]); n > 0 {
			i += n
			continue
		}
		if isAlnum(text[i]) {
			rest++
		}
		i++
	}
	return rest < 3
}

// standsFor reports whether text is written in the place of a value: a
// reference to a variable, a template, a mask.
func standsFor(text string) bool {
	t := strings.Trim(text, " \t\"'`\\")
	if t == "" {
		return true
	}
	first, final := t[0], last(t)
	switch {
	case first == '<' && final == '>', first == '{' && final == '}' && !strings.Contains(t, ":"), first == '[' && final == ']', first == '%' && final == '%':
		return !random(strings.TrimPrefix(t[1:max(1, len(t)-1)], placeholderHead[1:]))
	case first == '@' && final == '@' && len(t) > 2 && isIdentifier(t[1:len(t)-1]):
		return true
	case strings.HasPrefix(t, "${"), strings.HasPrefix(t, "$("), strings.HasPrefix(t, "{{"), strings.HasPrefix(t, "#{"), strings.HasPrefix(t, "<%"), strings.HasPrefix(t, "<?"), strings.HasPrefix(t, "%("), strings.HasPrefix(t, "!Ref"), strings.HasPrefix(t, "!Sub"), strings.HasPrefix(t, "&lt;"):
		return true
	case strings.HasPrefix(t, "op://"), strings.HasPrefix(t, "vault:"), strings.HasPrefix(t, "arn:"), strings.HasPrefix(t, "env:"), strings.HasPrefix(t, "secretsmanager:"), strings.HasPrefix(t, "###"):
		return true
	case first == '$' && len(t) > 1 && isIdentifier(strings.TrimPrefix(t[1:], "env:")) && shapeOf(t).digit*3 < len(t):
		return true
	case first == '%' && len(t) <= 3, first == '_' && final == '_' && strings.HasPrefix(t, "__"):
		return true
	case strings.Trim(t, "*") == "", strings.Trim(t, "xX") == "", strings.Trim(t, ".-_…•") == "", distinct(t) == 1, strings.HasSuffix(t, "..."), strings.HasSuffix(t, "…"), strings.Contains(t, "${") && !strings.Contains(t, "://"), strings.Contains(t, "{{"), strings.Contains(t, "****"):
		return true
	}
	return len(t) >= 6 && distinct(t) <= 2 && shapeOf(t).digit < len(t)
}

// dullWords reports whether text is made of words that no secret is made of,
// and at most spare digits.
func dullWords(text string, spare int) bool {
	words := splitWords(text)
	if len(words) == 0 || len(text) > 60 {
		return false
	}
	for _, w := range words {
		core := strings.TrimRight(w, digits)
		if len(w)-len(core) > spare && core != "" || core == "" && len(w) > spare+1 {
			return false
		}
		if core != "" && !segmented(core) {
			return false
		}
	}
	return shapeOf(text).other <= len(words)
}

// segmented reports whether w is a row of dull words.
func segmented(w string) bool {
	if len(w) > 40 {
		return false
	}
	reach := make([]bool, len(w)+1)
	reach[0] = true
	for i := range len(w) {
		if !reach[i] {
			continue
		}
		for j := i + 1; j <= len(w); j++ {
			if (j-i >= 3 || len(w) == j-i) && lists["dull"][w[i:j]] {
				reach[j] = true
			}
		}
	}
	return reach[len(w)]
}

// isIdentifier reports whether text is one name of code.
func isIdentifier(text string) bool {
	return len(text) > 0 && !isDigit(text[0]) && allIn(text, &goIdent)
}

var goIdent = setOf(digits, letters, "_")

// isSource reports whether text is an expression rather than a value: a call,
// an element of an array, members joined by dots.
func isSource(text string) bool {
	if strings.Contains(text, "://") || text[0] == '.' && allIn(text[1:], &alnumSet) && len(text) < 8 {
		return true
	}
	if service, action, ok := strings.Cut(text, ":"); ok && len(service) < 24 && allIn(service, &wordSet) && len(action) > 3 && isUpper(action[0]) && shapeOf(action).letters() == len(action) && !gibberish(action) {
		return true // an action of a policy, as in iam:ChangePassword
	}
	if i := strings.IndexAny(text, "(["); i > 0 && isAlnum(text[i-1]) && strings.IndexByte(")];,", last(text)) >= 0 && strings.ContainsAny(text[i:], ")]") && isChain(text[:i]) && shapeOf(text).digit < 4 {
		return true
	}
	if strings.HasPrefix(text, "application/") || strings.HasPrefix(text, "text/") || strings.HasPrefix(text, "urn:") {
		return true
	}
	return strings.ContainsAny(text, ".") && isChain(text) || strings.Contains(text, "->") || strings.Contains(text, "::")
}

// isChain reports whether text is names joined by dots, none of them random.
func isChain(text string) bool {
	text = strings.TrimLeft(text, "&*@$!")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "?.", "."), ".") {
		if !isIdentifier(part) || shapeOf(part).digit > 1 && len(part) > 5 && random(part) {
			return false
		}
	}
	return true
}

// isProse reports whether text is a sentence or a phrase.
func isProse(text string) bool {
	sh := shapeOf(text)
	if sh.wide > 0 && sh.wide*3 >= len(text) || sh.wide > 0 && sh.blank > 0 && sh.digit < 3 {
		return true
	}
	if sh.blank == 0 {
		return false
	}
	words := strings.Fields(text)
	plain := 0
	for _, w := range words {
		w = strings.Trim(w, ".,;:!?'\"()<>/*`")
		if ws := shapeOf(w); ws.letters()+ws.wide == len(w) && !gibberish(w) || len(w) <= 3 {
			plain++
		}
	}
	return plain*3 >= len(words)*2
}

// holdsKey reports whether one of the runs of text is a key by itself.
func holdsKey(text string) bool {
	for i := 0; i < len(text); i++ {
		end := run(text, i, &base64Set, len(text))
		if end-i >= 20 && veryRandom(text[i:end]) {
			return true
		}
		i = end
	}
	return false
}

// inConnectionString reports whether the semicolon at i stands between the
// fields of a connection string.
func inConnectionString(s string, i int) bool {
	next := run(s, i+1, &fieldSet, 40)
	return next < len(s) && next > i+1 && s[next] == '='
}

var fieldSet = setOf(digits, letters, " _")

// isPath reports whether text is the path of a file.
func isPath(text string) bool {
	if strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "~/") || len(text) > 2 && text[1] == ':' && text[2] == '\\' {
		return true
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && len(text)-i <= 6 {
		switch strings.ToLower(text[i+1:]) {
		case "pem", "key", "crt", "cer", "txt", "json", "yml", "yaml", "xml", "properties", "conf", "html", "js", "ts", "py", "go", "java", "rb", "php", "png", "svg", "md", "log", "com", "org", "net", "p12", "jks", "pfx", "ini", "env", "cfg", "csv":
			return true
		}
	}
	slashes := strings.Count(text, "/")
	if slashes > 0 && shapeOf(text).digit == 0 && wordy(text) {
		return true
	}
	return slashes > 0 && text[0] == '/' && !veryRandom(strings.ReplaceAll(text, "/", "")) || slashes > 1 && !random(strings.ReplaceAll(text, "/", ""))
}

// isHash reports whether text has the length of a common digest in hex.
func isHash(text string) bool {
	switch len(text) {
	case 32, 40, 56, 64, 96, 128:
		return allIn(text, &hexSet)
	}
	return false
}

// asks reports whether a name is that of a function that reads its argument's
// value elsewhere or checks it.
func asks(ident string) bool {
	words := splitWords(ident)
	switch words[0] {
	case "get", "find", "has", "is", "read", "load", "lookup", "env", "getenv", "fetch", "require", "verify", "check", "validate", "parse", "hash", "t", "i18n", "forgot", "reset", "errors", "test", "describe", "it", "require_":
		return true
	}
	return false
}

// gibberishFree reports whether a text that only follows a name in a list
// looks like a word.
func gibberishFree(text string) bool {
	return shapeOf(text).letters() == len(text) && !gibberish(text)
}

// statedSecret reports whether a word of prose after "password is" is one.
func statedSecret(text string) bool {
	sh := shapeOf(text)
	if len(text) < 5 || sh.letters() == len(text) && !gibberish(text) {
		return false
	}
	return sh.digit > 0 || sh.other > 0 && !strings.HasSuffix(text, "n't") && !strings.HasSuffix(text, "'s") || gibberish(text)
}
