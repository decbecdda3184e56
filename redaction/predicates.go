package redaction

import (
	"strings"
)

// The predicates of the classifiers.

func always(*candidate) bool { return true }

// ofText is the predicate of a candidate's text.
func ofText(is func(text string) bool) func(c *candidate) bool {
	return func(c *candidate) bool { return is(c.text) }
}

func hasDigit(text string) bool { return shapeOf(text).digit > 0 }

// namesResource reports whether the name, such as existingSecret, refers to a Kubernetes
// object that holds the secret, and the text is the name of an object.
func namesResource(c *candidate) bool {
	if !allIn(c.text, &resourceSet) || isRandom(c.text) {
		return false
	}
	words := splitWords(c.n.ident)
	return len(words) > 1 && strings.HasPrefix(lastWord(words), "secret") && lists["resource"][words[len(words)-2]]
}

// closesLiteral reports whether the quote before the text ends a literal that holds
// the name, as in prompt('Password: ', file).
func closesLiteral(c *candidate) bool {
	if strings.IndexByte(",);]}:+. ", c.text[0]) < 0 {
		return false
	}
	open := c.lit.start - 1
	return strings.Count(c.d.s[lineBegin(c.d.s, open):open], c.d.s[open:open+1])%2 == 1
}

// looksUp reports whether the function looks its argument's value up or checks it.
func looksUp(c *candidate) bool { return lists["lookupcall"][splitWords(c.n.ident)[0]] }

// isListed reports whether a text in quotes behind a comma may be the value.
func isListed(c *candidate) bool {
	return !isWordLike(c.text) && (hasDigit(c.text) || c.text != strings.ToUpper(c.text))
}

// isSpacedQuoted reports whether a quoted text after a name and a blank is its value, as in SQL
// and command lines, and not what a sentence such as "pass 'x' to f" or a message is about.
func isSpacedQuoted(c *candidate) bool {
	return isFlag(c.d.s, c.n.begin) || !strings.EqualFold(c.n.ident, "pass") && !beginsWith(c.d.s[c.lit.next:], []string{" not found", " already ", " does not"})
}

// isStatedSecret reports whether a word of prose after "password is" is one.
func isStatedSecret(c *candidate) bool {
	return len(c.text) >= 5 && !isWordLike(c.text) && !strings.Contains(c.text, "'") && !isCode(c.text)
}

// isSpacedBare reports whether text without quotes after a name and a blank is
// its value: of a flag, a line of a netrc file, a command.
func isSpacedBare(c *candidate) bool {
	s, n := c.d.s, c.n
	line := strings.ToLower(strings.TrimLeft(s[lineBegin(s, n.begin):n.begin], " \t"))
	switch {
	case isKeyLike(c.text):
		return true
	case isSource(c.text):
		return false
	case isFlag(s, n.begin):
		return true
	case line == "":
		return lists["directive"][n.ident]
	}
	return containsAny(line, heads["login"]) || beginsWith(line, heads["variable"]) || beginsWith(line, heads["setting"]) && !isWordLike(c.text)
}

// isKey reports whether the text looks like a key, or like one that a person made up.
func isKey(c *candidate) bool {
	return isLikelyKey(c.text) || c.lit.quoted && containsKey(c.text) || isHumanKey(c)
}

// isLikelyKey reports whether the value of a medium name looks like a key.
func isLikelyKey(text string) bool {
	if isRandom(text) || isKeyLike(text) || isUUID(text) {
		return true
	}
	return len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !isIdentifier(text)
}

// isHumanKey reports whether a key that a person made up is assigned: in quotes,
// or as a line of configuration or the field of a query.
func isHumanKey(c *candidate) bool {
	return isHumanMade(c.text) && (c.lit.quoted && c.bind != called && c.bind != compared || c.bind == element ||
		c.bind == assigned && (wholeLine(c.d.s, c.lit.start) || strings.IndexByte("?&", byteAt(c.d.s, c.n.begin-1)) >= 0))
}

// isRandomKey reports whether the value of a name such as key can only be a secret.
func isRandomKey(c *candidate) bool {
	return (isVeryRandom(c.text) || isKeyLike(c.text) && isKeyLength(len(c.text))) && (c.lit.quoted || shapeOf(c.text).other <= len(c.text)/6)
}

// isFileDigest reports whether the text is the SHA-1 of a module in a lock file of CocoaPods.
func isFileDigest(c *candidate) bool {
	return len(c.text) == 40 && allIn(c.text, &lowerHex) && byteAt(c.d.s, c.n.end) == ':'
}

func isServiceKey(c *candidate) bool {
	return isKeyLike(c.text) || isUUID(c.text) || len(c.text) >= 14 && isRandom(c.text) && shapeOf(c.text).other == 0
}

// isBareCode reports whether text without quotes is an expression. A constant may
// be set to a password that looks like one.
func isBareCode(c *candidate) bool {
	return isSource(c.text) && !(isConstant(c.n.ident) && isDotted(c.text)) || isNumber(c.text) ||
		looksLikeVersion(c.text)
}

// after returns the byte that follows the candidate and blanks.
func (c *candidate) after() byte { return byteAt(c.d.s, skipBlanks(c.d.s, c.lit.end)) }

// isField reports whether the text is a field of a connection string after the first. Such
// a field begins with a capital, unlike names in code.
func isField(c *candidate) bool {
	return c.after() == ';' && byteAt(c.d.s, c.n.begin-1) == ';' && isUpper(c.n.ident[0])
}

// beginsExpression reports whether a call, an index or a member follows the text.
func beginsExpression(c *candidate) bool {
	return c.after() == '(' || c.after() == '{' || strings.IndexByte("[.", byteAt(c.d.s, c.lit.end)) >= 0
}

// isVariable reports whether an identifier names a secret or a look-up of one.
func isVariable(c *candidate) bool {
	if hasDigit(c.text) && !isWordy(c.text) || isGibberish(c.text) {
		return false
	}
	words := splitWords(c.text)
	return c.d.strengthOf(c.text) >= weakName || len(words) > 1 && lists["lookup"][words[0]]
}

// isBareValue reports whether an identifier is a value of configuration.
func isBareValue(c *candidate) bool {
	after := c.after()
	if after == ',' || after == ';' || after == ')' { // more likely a name of code
		return isRandom(c.text) && shapeOf(c.text).digit > 1
	}
	return c.n.strength == mediumName || hasDigit(c.text) || lineEnders.has(after) || isFlag(c.d.s, c.n.begin) || isGibberish(c.text)
}

// isWordLike reports whether text is letters that could be a word.
func isWordLike(text string) bool {
	return shapeOf(text).letters() == len(text) && !isGibberish(text)
}

// isPassphrase reports whether text is up to seven words with a digit among
// them and without the words of a sentence about a password, or four groups of
// four letters, such as the application passwords of mail services.
func isPassphrase(text string) bool {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 7 || len(text) > maxPhrase || strings.ContainsAny(text, "<>(){}[]:;,\"|\\") {
		return false
	}
	groups := len(words) == 4
	for _, w := range words {
		if lists["saying"][strings.ToLower(strings.Trim(w, ".!?'"))] {
			return false
		}
		groups = groups && len(w) == 4 && allIn(w, &lowerSet)
	}
	return groups || hasDigit(text)
}

// isOtherFunction reports whether the last member of the name, which is called, names no secret.
func isOtherFunction(c *candidate) bool {
	return c.d.strengthOf(c.n.ident[strings.LastIndexByte(c.n.ident, '.')+1:]) == noName
}

// isWritten reports whether a word of prose can only be a password that a
// person made up: it has a mark or capitals among its letters and digits.
func isWritten(c *candidate) bool {
	text := c.text
	if !c.n.isPassword() || !isAlnum(text[0]) || strings.ContainsAny(text, "()=<>[]{};:,\"'`/|\\") || !isHumanMade(text) {
		return false
	}
	sh := shapeOf(text)
	return sh.digit > 0 && (countIn(text, &passwordMarks) > 0 || sh.upper > 0 && sh.lower > 0)
}

// isNoArgument reports whether text, which is where a command or a call takes a secret,
// is none: a flag, a path, a word for a secret.
func isNoArgument(c *candidate) bool {
	text := c.text
	return text[0] == '-' || isCommonWords(text, 0) || isPath(text) || isProse(text) && !isPassphrase(text) || isCode(text) ||
		isSource(text) && !c.lit.quoted
}

// isItem reports whether an element of a list is a secret. It is strict: lists of
// other things, such as tokens of a grammar, have the same names.
func isItem(c *candidate) bool {
	text := c.text
	if strings.ContainsAny(text, " \\") {
		return false
	}
	if c.n.strength == strongName {
		return (isMixed(text) || isHumanMade(text)) && !looksLikeVersion(text)
	}
	return isUUID(text) || (isKeyLike(text) || isVeryRandom(text)) && allIn(text, &bearerSet)
}

// isMember reports whether a value of a map is a secret.
func isMember(c *candidate) bool {
	if lists["digest"][strings.ToLower(c.d.fieldBefore(c.lit.start-1))] || strings.ContainsAny(c.text, " \\") {
		return false
	}
	return c.n.strength == strongName && isHumanMade(c.text) && !isIdentifier(c.text) || isRandom(c.text) && isItem(c)
}

// isMixed reports whether text has digits, marks or an unusual spelling beside
// its letters, as passwords have and words do not.
func isMixed(text string) bool {
	sh := shapeOf(text)
	return sh.letters() > 0 && len(text) >= 6 && (sh.digit > 0 || isRandom(text)) && !isWordy(text)
}
