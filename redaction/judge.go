package redaction

import "strings"

// isSecret decides whether text, tied to the name n by l, is a secret. What it
// lets go must be plainly something else; what a name promises strongly needs
// no more than not to be that.
func (d *detector) isSecret(n nameRef, l link, lit literal, text string) bool {
	if plainlyElse(n, text) {
		return false
	}
	if n.strength >= mediumName && isSeedPhrase(text) || n.strength >= weakName && lit.quoted && isSalt(text) {
		return true
	}
	if allIn(text, &digitSet) {
		if words := splitWords(n.ident); words[len(words)-1] == "id" {
			return false // the number of a row
		}
	}
	if lit.quoted && d.closesLiteral(lit, text) {
		return false
	}
	if lit.quoted && len(text) > 200 && n.strength < strongName && strings.ContainsAny(text, " <>") {
		return false
	}
	if n.isReference() && isResource(text) || d.inImage(n, lit) {
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

// plainlyElse reports whether text is no secret, whatever its name promises.
func plainlyElse(n nameRef, text string) bool {
	switch {
	case len(text) < 3, isPlaceholder(text), standsFor(text), strings.EqualFold(text, n.ident):
		return true
	case byteEscapes(text), isFloat(text), isSealed(text), isDigest(text), isSchema(text), isPublicKey(text):
		return true
	}
	return n.strength < strongName && countsUp(text)
}

// isReference reports whether n names another document that holds the secret,
// as in manifests of Kubernetes.
func (n nameRef) isReference() bool {
	words := splitWords(n.ident)
	if len(words) < 2 || words[len(words)-1] != "secret" && words[len(words)-1] != "secrets" {
		return false
	}
	switch words[len(words)-2] {
	case "existing", "password", "pull", "tls", "credentials", "auth", "external":
		return true
	}
	return false
}

// isResource reports whether text is spelt as the names of resources are:
// words joined by dashes.
func isResource(text string) bool { return allIn(text, &resourceSet) && !random(text) }

var resourceSet = setOf(lowers, "-")

// inImage reports whether n is the name of an image of a container and lit its
// tag.
func (d *detector) inImage(n nameRef, lit literal) bool {
	if lit.quoted || lit.start != n.end+1 || d.s[n.end] != ':' {
		return false
	}
	line := d.s[lineBegin(d.s, n.begin):n.begin]
	return strings.Contains(line, "image: ") || strings.HasPrefix(line, "FROM ") || strings.Contains(line, "docker p")
}

// isSalt reports whether text is one of the long keys of all printable
// characters, blanks among them, that blogs are installed with.
func isSalt(text string) bool {
	if len(text) < 40 || len(text) > 80 || strings.IndexByte(text, '\n') >= 0 {
		return false
	}
	sh := shapeOf(text)
	return sh.other >= 8 && sh.digit >= 2 && sh.upper >= 2 && sh.lower >= 2 && sh.blank <= 4 && entropy(text) > 4.5
}

// isSeedPhrase reports whether text is the words a wallet's key is made from
// (BIP 39): twelve to twenty-four of three to eight small letters.
func isSeedPhrase(text string) bool {
	if strings.Count(text, " ") < 11 {
		return false
	}
	words := strings.Fields(text)
	if len(words) < 12 || len(words) > 24 || len(words)%3 != 0 {
		return false
	}
	for _, w := range words {
		if len(w) < 3 || len(w) > 8 || strings.Trim(w, lowers) != "" {
			return false
		}
	}
	return true
}

// closesLiteral reports whether the quote before text ends a literal that the
// name stands in, as in prompt('Password: ', file).
func (d *detector) closesLiteral(lit literal, text string) bool {
	if strings.IndexByte(",);]}:+. ", text[0]) < 0 {
		return false
	}
	quote := d.s[lit.start-1 : lit.start]
	return strings.Count(d.s[lineBegin(d.s, lit.start-1):lit.start-1], quote)%2 == 1
}

// strongValue judges the value of a name such as password: it need be no more than
// neither prose nor code.
func (d *detector) strongValue(n nameRef, l link, lit literal, text string) bool {
	if dullWords(text, 1) || isPath(text) || isProse(text) && !isPhrase(n, text) {
		return false
	}
	if isUUID(text) {
		return l != compared && l != listed && l != called
	}
	if lit.quoted {
		return d.strongQuote(n, l, lit, text)
	}
	switch l {
	case stated:
		return statedSecret(text) && !isCode(text)
	case spaced:
		return d.spacedBare(n, lit, text)
	case element:
		return true
	}
	return d.bareSecret(n, lit, text, false)
}

// isPhrase reports whether text is a phrase of small letters whose name
// promises one.
func isPhrase(n nameRef, text string) bool {
	return n.isPassword() && isPassphrase(text) || strings.Contains(strings.ToLower(n.ident), "phrase") && text == strings.ToLower(text) && allIn(text, &phraseSet)
}

// isPassword reports whether n names a password and nothing around it.
func (n nameRef) isPassword() bool {
	words := splitWords(n.ident)
	switch strings.TrimRight(words[len(words)-1], digits) {
	case "password", "passwd", "passphrase", "pass", "pwd", "pw", "passcode", "passwort", "kennwort":
		return true
	}
	return false
}

// isPassphrase reports whether text is some words with a number or a mark
// among them that nobody would say of a password, or four groups of four letters, as
// mail services make them for programs.
func isPassphrase(text string) bool {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 7 || len(text) > maxPhrase || strings.ContainsAny(text, "<>(){}[]:;,\"|\\") {
		return false
	}
	groups := len(words) == 4
	for _, w := range words {
		if lists["saying"][strings.ToLower(strings.Trim(w, ".!?'"))] || isFloat(w) || strings.Contains(w, "://") {
			return false
		}
		groups = groups && len(w) == 4 && allIn(w, &lowerSet)
	}
	return groups || shapeOf(text).digit > 0 && strings.IndexByte(".?…", last(text)) < 0
}

const maxPhrase = 64

var lowerSet = setOf(lowers)

var phraseSet = setOf(lowers, " -")

func (d *detector) strongQuote(n nameRef, l link, lit literal, text string) bool {
	if isCode(text) {
		return false
	}
	switch l {
	case called:
		return !asks(n.ident)
	case spaced:
		return d.spacedQuote(n, lit)
	case listed:
		return !plainLetters(text) && (shapeOf(text).digit > 0 || text != strings.ToUpper(text))
	}
	return true
}

// mediumValue judges the value of a name such as token: it has to look like a key, or
// like what a person makes up for one.
func (d *detector) mediumValue(n nameRef, l link, lit literal, text string) bool {
	if dullWords(text, 2) || isPath(text) || isProse(text) || isSource(text) || l == called && asks(n.ident) {
		return false
	}
	if !likely(text) && !(lit.quoted && (holdsKey(text) || isBlockKey(text))) && !d.humanKey(n, l, lit, text) {
		return false
	}
	if l == compared && shapeOf(text).digit == 0 && len(text) < 12 {
		return false // a keyword of some grammar
	}
	if lit.quoted {
		return l != spaced || d.spacedQuote(n, lit) || veryRandom(text)
	}
	switch l {
	case stated, fallback, paired, element:
		return shapeOf(text).digit > 0
	case spaced:
		return isFlag(d.s, n.begin) && shapeOf(text).digit > 0 || veryRandom(text)
	}
	return d.bareSecret(n, lit, text, true)
}

// isBlockKey reports whether text is digits of the length of a cipher's key.
func isBlockKey(text string) bool {
	return (len(text) == 16 || len(text) == 24 || len(text) == 32) && allIn(text, &digitSet)
}

// humanKey reports whether a key or token that somebody made up is assigned:
// in quotes, or as a line of configuration or the field of a query.
func (d *detector) humanKey(n nameRef, l link, lit literal, text string) bool {
	if !human(text) || l != assigned && l != paired && l != fallback && l != element && l != spaced && l != listed {
		return false
	}
	return lit.quoted || l == element || l == assigned && (wholeLine(d.s, lit.start) || n.begin > 0 && strings.IndexByte("?&", d.s[n.begin-1]) >= 0)
}

// likely reports whether a text that a name promises can be a key.
func likely(text string) bool {
	if random(text) || keyLike(text) || isUUID(text) {
		return true
	}
	return len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !isIdentifier(text)
}

// weakValue judges the value of a name such as key: it can hardly be anything else.
func (d *detector) weakValue(l link, lit literal, text string) bool {
	belongs := l == assigned || l == stated || l == spaced
	switch {
	case isHash(text) && !lit.quoted && (!belongs || d.inChecksums(lit.start)):
		return false
	case isSource(text), isPath(text), isUUID(text), isNumber(text):
		return false
	case strings.HasPrefix(text, "0x") && isNumber(strings.TrimRight(text, "uUlL")):
		return false
	case encodesPair(text) && len(text) >= 12:
		return true
	}
	return (veryRandom(text) || keyLike(text) && isKeyLength(len(text))) && (lit.quoted || shapeOf(text).other <= len(text)/6)
}

// inChecksums reports whether what is at i stands below the heading of the
// digests of a lock file of CocoaPods.
func (d *detector) inChecksums(i int) bool {
	return strings.Contains(d.s[max(0, i-maxChecksums):i], "SPEC CHECKSUMS:")
}

// maxChecksums is how far below its heading a digest is known to be one.
const maxChecksums = 4 << 10

// vendorValue judges the value of the name of a service, which promises nothing.
func vendorValue(l link, text string) bool {
	if isSource(text) || isPath(text) || l == compared {
		return false
	}
	return keyLike(text) || isUUID(text) || len(text) >= 14 && random(text) && shapeOf(text).other == 0
}

// spacedQuote reports whether a quoted text after a name and a blank is its
// value: in SQL, in a command line, in some languages of configuration. In
// prose and code, the two have little to do with each other.
func (d *detector) spacedQuote(n nameRef, lit literal) bool {
	if isFlag(d.s, n.begin) {
		return true
	}
	if rest := d.s[lit.next:min(len(d.s), lit.next+12)]; strings.HasPrefix(rest, " not found") || strings.HasPrefix(rest, " already ") || strings.HasPrefix(rest, " does not") {
		return false // the name of one
	}
	const longest = 80
	return n.strength == strongName && !strings.EqualFold(n.ident, "pass") && lit.next-lit.start < longest && !strings.Contains(n.ident, ".")
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
	switch first := strings.TrimSpace(line); first {
	case "":
		if lists["directive"][n.ident] && !isSource(text) {
			return true
		}
		if plainLetters(text) || isSource(text) || dullWords(text, 1) {
			return false
		}
		return strings.Contains(n.ident, ".") || d.followsLogin(n.begin) || random(text) && shapeOf(text).digit > 0 && d.endsLine(lit.end)
	case "env", "arg", "setenv", "set -x", "set -gx":
		return !isSource(text)
	case "enable", "set":
		return !isSource(text) && !plainLetters(text)
	}
	for _, word := range []string{"username ", "nmcli ", "d-i ", "dict set ", "array set ", "reg add ", "reg.exe add "} {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), word) {
			return !isSource(text) && !plainLetters(text)
		}
	}
	return strings.Contains(line, "login ") || strings.Contains(line, "machine ") || strings.HasSuffix(line, "identified by ")
}

// endsLine reports whether the line ends at i.
func (d *detector) endsLine(i int) bool {
	return i >= len(d.s) || d.s[i] == '\n' || d.s[i] == '\r'
}

// followsLogin reports whether the line before the one at i names a login or
// a machine, as the lines of a netrc file do.
func (d *detector) followsLogin(i int) bool {
	begin := lineBegin(d.s, i)
	if begin == 0 {
		return false
	}
	before := strings.TrimLeft(d.s[lineBegin(d.s, begin-1):begin], " \t")
	return strings.HasPrefix(before, "login ") || strings.HasPrefix(before, "machine ")
}

// bareSecret tells a value of configuration from a name of code. sure is set
// for what looks like a key.
func (d *detector) bareSecret(n nameRef, lit literal, text string, sure bool) bool {
	switch {
	case isSource(text) && !(n.isPassword() && isConstant(n.ident) && isDotted(text)), isNumber(text), isSum(text):
		return false
	case strings.IndexByte("&*@:-!^#", text[0]) >= 0 && !random(text):
		return false
	}
	after := byte('\n')
	if i := gap(d.s, lit.end); i < len(d.s) {
		after = d.s[i]
	}
	switch {
	case after == ';' && (inConnectionString(d.s, lit.end) || n.lastField(d.s)):
		return true
	case after == '(', after == '{', after == '>' && last(text) == '-', lit.end < len(d.s) && (d.s[lit.end] == '[' || d.s[lit.end] == '.'):
		return false
	case !isIdentifier(text):
		return true
	case d.isVariable(text):
		return false
	case after == ',', after == ';', after == ')':
		return random(text) && (shapeOf(text).digit > 1 || len(splitWords(text)) == 1 && gibberish(text))
	}
	return sure || shapeOf(text).digit > 0 || strings.IndexByte(lineEnders, after) >= 0 || isFlag(d.s, n.begin) || gibberish(text)
}

// lineEnders are what may follow a value of configuration and no name of code.
const lineEnders = "\n\r\\-#&}\"'`"

// isVariable reports whether an identifier names a secret or a look-up of one.
func (d *detector) isVariable(ident string) bool {
	if shapeOf(ident).digit > 0 && !wordy(ident) || gibberish(ident) {
		return false
	}
	words := splitWords(ident)
	return d.strengthOf(ident) >= weakName || len(words) > 1 && lists["lookup"][words[0]] && !gibberish(ident)
}

// asks reports whether a name is that of a function that reads its argument's
// value elsewhere or checks it.
func asks(ident string) bool {
	words := splitWords(ident)
	switch words[0] {
	case "get", "find", "has", "is", "read", "load", "lookup", "env", "getenv", "fetch", "require", "require_",
		"verify", "check", "validate", "parse", "hash", "t", "i18n", "forgot", "reset", "errors", "test", "describe", "it":
		return true
	}
	return false
}

// plainLetters reports whether a text that only follows a name in a list
// looks like a word.
func plainLetters(text string) bool {
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
