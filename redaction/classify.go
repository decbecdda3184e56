package redaction

import (
	"slices"
	"strings"
)

// isSecret decides whether text, bound to the name n by bind, is a secret. A
// text that is recognizably something else is not. For a strong name nothing
// more is required; the weaker the name, the more the text has to look like a key.
func (d *detector) isSecret(n nameRef, bind binding, lit literal, text string) bool {
	switch {
	case isNotSecret(n, text):
		return false
	case n.strength >= mediumName && isSeedPhrase(text), n.strength >= weakName && lit.quoted && isSalt(text):
		return true
	case allIn(text, &digitSet) && lastWord(n.words()) == "id": // the number of a row
		return false
	case lit.quoted && d.closesLiteral(lit, text):
		return false
	case lit.quoted && len(text) > 200 && n.strength < strongName && strings.ContainsAny(text, " <>"):
		return false
	case n.namesResource() && isResource(text), d.inImage(n, lit):
		return false
	}
	switch n.strength {
	case strongName:
		return d.classifyStrong(n, bind, lit, text)
	case mediumName:
		return d.classifyMedium(n, bind, lit, text)
	case weakName:
		return d.classifyWeak(bind, lit, text)
	}
	return classifyVendor(bind, text)
}

// notSecrets recognize texts that are no secret, whatever their name.
var notSecrets = []func(text string) bool{isPlaceholder, isReference, isByteEscapes, isFloat, isSealed, isDigest, isSchema, isPublicKey}

func isNotSecret(n nameRef, text string) bool {
	return len(text) < 3 || strings.EqualFold(text, n.ident) || n.strength < strongName && isCountingHex(text) ||
		slices.ContainsFunc(notSecrets, func(is func(string) bool) bool { return is(text) })
}

// isResource reports whether text is words joined by dashes, like Kubernetes resources.
func isResource(text string) bool { return allIn(text, &resourceSet) && !isRandom(text) }

// inImage reports whether n is the name of a container image and lit its tag.
func (d *detector) inImage(n nameRef, lit literal) bool {
	if lit.quoted || lit.start != n.end+1 || d.s[n.end] != ':' {
		return false
	}
	line := d.s[lineBegin(d.s, n.begin):n.begin]
	return strings.Contains(line, "image: ") || strings.HasPrefix(line, "FROM ") || strings.Contains(line, "docker p")
}

// isSalt reports whether text is a long key of all printable characters, blanks
// included, such as the salts of a WordPress installation.
func isSalt(text string) bool {
	if len(text) < 40 || len(text) > 80 || strings.IndexByte(text, '\n') >= 0 {
		return false
	}
	sh := shapeOf(text)
	return sh.other >= 8 && sh.digit >= 2 && sh.upper >= 2 && sh.lower >= 2 && sh.blank <= 4 && entropy(text) > 4.5
}

// isSeedPhrase reports whether text is the words of a wallet's key (BIP 39):
// twelve to twenty-four words of three to eight small letters.
func isSeedPhrase(text string) bool {
	if strings.Count(text, " ") < 11 {
		return false
	}
	words := strings.Fields(text)
	return len(words) >= 12 && len(words) <= 24 && len(words)%3 == 0 && !slices.ContainsFunc(words, func(w string) bool {
		return len(w) < 3 || len(w) > 8 || !allIn(w, &lowerSet)
	})
}

// closesLiteral reports whether the quote before text ends a literal that holds
// the name, as in prompt('Password: ', file).
func (d *detector) closesLiteral(lit literal, text string) bool {
	if strings.IndexByte(",);]}:+. ", text[0]) < 0 {
		return false
	}
	quote := d.s[lit.start-1 : lit.start]
	return strings.Count(d.s[lineBegin(d.s, lit.start-1):lit.start-1], quote)%2 == 1
}

// classifyStrong reports whether text, neither prose nor code, is a password.
func (d *detector) classifyStrong(n nameRef, bind binding, lit literal, text string) bool {
	switch {
	case isCommonWords(text, 1), isPath(text), isProse(text) && !isPhrase(n, text):
		return false
	case isUUID(text):
		return bind != compared && bind != listed && bind != called
	case lit.quoted:
		return d.classifyStrongQuoted(n, bind, lit, text)
	case bind == stated:
		return isStatedSecret(text) && !isCode(text)
	case bind == spaced:
		return d.isSpacedBare(n, lit, text)
	}
	return bind == element || d.isBareSecret(n, lit, text, false)
}

func (d *detector) classifyStrongQuoted(n nameRef, bind binding, lit literal, text string) bool {
	if isCode(text) {
		return false
	}
	switch bind {
	case called:
		return !looksUp(n.ident)
	case spaced:
		return d.isSpacedQuoted(n, lit)
	case listed:
		return !isWordLike(text) && (shapeOf(text).digit > 0 || text != strings.ToUpper(text))
	}
	return true
}

// isPhrase reports whether text is a phrase and the name n allows one.
func isPhrase(n nameRef, text string) bool {
	return n.isPassword() && isPassphrase(text) || strings.Contains(strings.ToLower(n.ident), "phrase") && text == strings.ToLower(text) && allIn(text, &phraseSet)
}

// isPassphrase reports whether text is two to seven words with a digit among
// them and without the words of a sentence about a password, or four groups of
// four letters, such as the application passwords of mail services.
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
	return groups || shapeOf(text).digit > 0 && strings.IndexByte(".?…", lastByte(text)) < 0
}

// classifyMedium reports whether text is the value of a name such as token: it
// looks like a key, or like one that a person made up.
func (d *detector) classifyMedium(n nameRef, bind binding, lit literal, text string) bool {
	if isCommonWords(text, 2) || isPath(text) || isProse(text) || isSource(text) || bind == called && looksUp(n.ident) {
		return false
	}
	if !isLikelyKey(text) && !(lit.quoted && (containsKey(text) || isBlockKey(text))) && !d.isHumanKey(n, bind, lit, text) {
		return false
	}
	if bind == compared && shapeOf(text).digit == 0 && len(text) < 12 {
		return false // a keyword of a grammar
	}
	if lit.quoted {
		return bind != spaced || d.isSpacedQuoted(n, lit) || isVeryRandom(text)
	}
	switch bind {
	case stated, fallback, paired, element:
		return shapeOf(text).digit > 0
	case spaced:
		return isFlag(d.s, n.begin) && shapeOf(text).digit > 0 || isVeryRandom(text)
	}
	return d.isBareSecret(n, lit, text, true)
}

// isBlockKey reports whether text is digits of the length of a cipher's key.
func isBlockKey(text string) bool {
	return (len(text) == 16 || len(text) == 24 || len(text) == 32) && allIn(text, &digitSet)
}

// isHumanKey reports whether a key that a person made up is assigned: in quotes,
// or as a line of configuration or the field of a query.
func (d *detector) isHumanKey(n nameRef, bind binding, lit literal, text string) bool {
	switch bind {
	case assigned, paired, fallback, element, spaced, listed:
		return isHumanMade(text) && (lit.quoted || bind == element ||
			bind == assigned && (wholeLine(d.s, lit.start) || n.begin > 0 && strings.IndexByte("?&", d.s[n.begin-1]) >= 0))
	}
	return false
}

// isLikelyKey reports whether the value of a medium name looks like a key.
func isLikelyKey(text string) bool {
	if isRandom(text) || isKeyLike(text) || isUUID(text) {
		return true
	}
	return len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !isIdentifier(text)
}

// classifyWeak reports whether the value of a name such as key can only be a secret.
func (d *detector) classifyWeak(bind binding, lit literal, text string) bool {
	belongs := bind == assigned || bind == stated || bind == spaced
	before := d.s[max(0, lit.start-maxChecksums):lit.start]
	switch {
	case isHash(text) && !lit.quoted && (!belongs || strings.Contains(before, "SPEC CHECKSUMS:")): // in a lock file of CocoaPods
		return false
	case isSource(text), isPath(text), isUUID(text), isNumber(text):
		return false
	case strings.HasPrefix(text, "0x") && isNumber(strings.TrimRight(text, "uUlL")):
		return false
	case isEncodedPair(text) && len(text) >= 12:
		return true
	}
	return (isVeryRandom(text) || isKeyLike(text) && isKeyLength(len(text))) && (lit.quoted || shapeOf(text).other <= len(text)/6)
}

// classifyVendor reports whether text is the value of the name of a service.
func classifyVendor(bind binding, text string) bool {
	if isSource(text) || isPath(text) || bind == compared {
		return false
	}
	return isKeyLike(text) || isUUID(text) || len(text) >= 14 && isRandom(text) && shapeOf(text).other == 0
}

// isSpacedQuoted reports whether a quoted text after a name and a blank is its
// value, as in SQL and command lines. In prose and code the two are seldom related.
func (d *detector) isSpacedQuoted(n nameRef, lit literal) bool {
	if isFlag(d.s, n.begin) {
		return true
	}
	if beginsWith(d.s[lit.next:min(len(d.s), lit.next+12)], []string{" not found", " already ", " does not"}) {
		return false // the text is a name
	}
	return n.strength == strongName && !strings.EqualFold(n.ident, "pass") && lit.next-lit.start < 80 && !strings.Contains(n.ident, ".")
}

// isSpacedBare reports whether text without quotes after a name and a blank is
// its value: of a flag, a line of a netrc file, a command.
func (d *detector) isSpacedBare(n nameRef, lit literal, text string) bool {
	switch {
	case isKeyLike(text):
		return true
	case isFlag(d.s, n.begin):
		return !strings.HasPrefix(text, "-") && !isSource(text)
	}
	line := strings.ToLower(d.s[lineBegin(d.s, n.begin):n.begin])
	switch first := strings.TrimSpace(line); {
	case first == "" && lists["directive"][n.ident] && !isSource(text):
		return true
	case first == "":
		if isWordLike(text) || isSource(text) || isCommonWords(text, 1) {
			return false
		}
		return strings.Contains(n.ident, ".") || d.followsLogin(n.begin) || isRandom(text) && shapeOf(text).digit > 0 && strings.IndexByte("\x00\r\n", byteAt(d.s, lit.end)) >= 0
	case slices.Contains([]string{"env", "arg", "setenv", "set -x", "set -gx"}, first):
		return !isSource(text)
	case first == "enable", first == "set", beginsWith(strings.TrimLeft(line, " \t"), heads["setting"]):
		return !isSource(text) && !isWordLike(text)
	}
	return strings.Contains(line, "login ") || strings.Contains(line, "machine ") || strings.HasSuffix(line, "identified by ")
}

// followsLogin reports whether the line before i's begins like one of a netrc file.
func (d *detector) followsLogin(i int) bool {
	begin := lineBegin(d.s, i)
	if begin == 0 {
		return false
	}
	return beginsWith(strings.TrimLeft(d.s[lineBegin(d.s, begin-1):begin], " \t"), []string{"login ", "machine "})
}

// isBareSecret reports whether text without quotes is a value of configuration
// and not a name of code. sure is set for what looks like a key.
func (d *detector) isBareSecret(n nameRef, lit literal, text string, sure bool) bool {
	switch {
	case isSource(text) && !(n.isPassword() && isConstant(n.ident) && isDotted(text)), isNumber(text), isSum(text):
		return false
	case strings.IndexByte("&*@:-!^#", text[0]) >= 0 && !isRandom(text):
		return false
	}
	after := byteAt(d.s, skipBlanks(d.s, lit.end))
	switch {
	case after == ';' && (inConnectionString(d.s, lit.end) || n.isLaterField(d.s)):
		return true
	case after == '(', after == '{', after == '>' && lastByte(text) == '-', lit.end < len(d.s) && (d.s[lit.end] == '[' || d.s[lit.end] == '.'):
		return false
	case !isIdentifier(text):
		return true
	case d.isVariable(text):
		return false
	case after == ',', after == ';', after == ')':
		return isRandom(text) && (shapeOf(text).digit > 1 || len(splitWords(text)) == 1 && isGibberish(text))
	}
	return sure || shapeOf(text).digit > 0 || lineEnders.has(after) || isFlag(d.s, n.begin) || isGibberish(text)
}

// isVariable reports whether an identifier names a secret or a look-up of one.
func (d *detector) isVariable(ident string) bool {
	if shapeOf(ident).digit > 0 && !isWordy(ident) || isGibberish(ident) {
		return false
	}
	words := splitWords(ident)
	return d.strengthOf(ident) >= weakName || len(words) > 1 && lists["lookup"][words[0]]
}

// looksUp reports whether a function looks its argument's value up or checks it.
func looksUp(ident string) bool { return lists["lookupcall"][splitWords(ident)[0]] }

// isWordLike reports whether text is letters that could be a word.
func isWordLike(text string) bool {
	return shapeOf(text).letters() == len(text) && !isGibberish(text)
}

// isStatedSecret reports whether a word of prose after "password is" is one.
func isStatedSecret(text string) bool {
	sh := shapeOf(text)
	if len(text) < 5 || sh.letters() == len(text) && !isGibberish(text) {
		return false
	}
	return sh.digit > 0 || sh.other > 0 && !strings.HasSuffix(text, "n't") && !strings.HasSuffix(text, "'s") || isGibberish(text)
}
