package redaction

import (
	"slices"
	"strings"
)

// The predicates of the classifiers.

func always(*candidate) bool { return true }

// ofText is the predicate of a candidate's text.
func ofText(is func(text string) bool) func(c *candidate) bool {
	return func(c *candidate) bool { return is(c.text) }
}

func hasDigit(c *candidate) bool { return shapeOf(c.text).digit > 0 }

func isRowID(c *candidate) bool {
	return allIn(c.text, &digitSet) && lastWord(c.n.words()) == "id"
}

func isMarkup(c *candidate) bool { return len(c.text) > 200 && strings.ContainsAny(c.text, " <>") }

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

// isSpacedQuoted reports whether a quoted text after a name and a blank is its
// value, as in SQL and command lines. In prose and code the two are seldom related.
func isSpacedQuoted(c *candidate) bool {
	return isFlag(c.d.s, c.n.begin) || isVeryRandom(c.text) ||
		c.n.strength == strongName && !strings.EqualFold(c.n.ident, "pass") && !strings.Contains(c.n.ident, ".")
}

// isStatedSecret reports whether a word of prose after "password is" is one.
func isStatedSecret(c *candidate) bool {
	return !isWordLike(c.text) && !isCode(c.text)
}

// isSpacedBare reports whether text without quotes after a name and a blank is
// its value: of a flag, a line of a netrc file, a command.
func isSpacedBare(c *candidate) bool {
	s, n := c.d.s, c.n
	line := strings.TrimLeft(strings.ToLower(s[lineBegin(s, n.begin):n.begin]), " \t")
	switch {
	case isKeyLike(c.text):
		return true
	case isSource(c.text):
		return false
	case isFlag(s, n.begin), line == "" && (lists["directive"][n.ident] || isRandom(c.text) && hasDigit(c)):
		return true
	}
	return !isWordLike(c.text) && beginsWith(line, heads["setting"]) || containsAny(line, heads["login"])
}

// isKey reports whether the text looks like a key, or like one that a person made up.
func isKey(c *candidate) bool {
	return isLikelyKey(c.text) || c.lit.quoted && containsKey(c.text) || isHumanMade(c.text) && (c.lit.quoted || c.bind == assigned && wholeLine(c.d.s, c.lit.start))
}

// isLikelyKey reports whether the value of a medium name looks like a key.
func isLikelyKey(text string) bool {
	if isRandom(text) || isKeyLike(text) || isUUID(text) {
		return true
	}
	return len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !isIdentifier(text)
}

// isRandomKey reports whether the value of a name such as key can only be a secret.
func isRandomKey(c *candidate) bool {
	return (isVeryRandom(c.text) || isKeyLike(c.text) && isKeyLength(len(c.text))) && (c.lit.quoted || shapeOf(c.text).other <= len(c.text)/6)
}

// after returns the byte that follows the candidate and blanks.
func (c *candidate) after() byte { return byteAt(c.d.s, skipBlanks(c.d.s, c.lit.end)) }

func isField(c *candidate) bool {
	return c.after() == ';' && (inConnectionString(c.d.s, c.lit.end) || c.n.isLaterField(c.d.s))
}

// beginsExpression reports whether a call, an index or a member follows the text.
func beginsExpression(c *candidate) bool {
	next, after := byteAt(c.d.s, c.lit.end), c.after()
	return next == '[' || next == '.' || after == '(' || after == '{' || after == '>' && lastByte(c.text) == '-'
}

// isVariable reports whether an identifier names a secret.
func isVariable(c *candidate) bool {
	return (!hasDigit(c) || isWordy(c.text)) && !isGibberish(c.text) && c.d.strengthOf(c.text) >= weakName
}

// isBareValue reports whether an identifier is a value of configuration.
func isBareValue(c *candidate) bool {
	after := c.after()
	if after == ',' || after == ';' || after == ')' { // more likely a name of code
		return isRandom(c.text) && shapeOf(c.text).digit > 1
	}
	return hasDigit(c) || lineEnders.has(after) || isFlag(c.d.s, c.n.begin) || isGibberish(c.text)
}

// isWordLike reports whether text is letters that could be a word.
func isWordLike(text string) bool {
	return shapeOf(text).letters() == len(text) && !isGibberish(text)
}

// isSalt reports whether text is a long key of all printable characters, blanks
// included, such as the salts of a WordPress installation.
func isSalt(text string) bool {
	sh := shapeOf(text)
	return len(text) >= 40 && len(text) <= 80 && sh.other >= 8 && sh.digit >= 2 && sh.upper >= 2 && sh.blank <= 4 && !strings.Contains(text, "\n") && entropy(text) > 4.5
}

// isSeedPhrase reports whether text is the words of a wallet's key (BIP 39).
func isSeedPhrase(text string) bool {
	if strings.Count(text, " ") < 11 {
		return false
	}
	words := strings.Fields(text)
	return len(words) >= 12 && len(words) <= 24 && len(words)%3 == 0 && !slices.ContainsFunc(words, func(w string) bool {
		return len(w) < 3 || len(w) > 8 || !allIn(w, &lowerSet)
	})
}

// isPassphrase reports whether text is two to seven words with a digit among
// them and without the words of a sentence about a password.
func isPassphrase(text string) bool {
	words := strings.Fields(text)
	return len(words) >= 2 && len(words) <= 7 && len(text) <= maxPhrase && (shapeOf(text).digit > 0 || isAppPassword(text)) && !strings.ContainsAny(text, "<>(){}[]:;,\"|\\") &&
		!slices.ContainsFunc(words, func(w string) bool { return lists["saying"][strings.ToLower(strings.Trim(w, ".!?'"))] })
}

// isOtherFunction reports whether the last member of the name, which is called, names no secret.
func isOtherFunction(c *candidate) bool {
	return c.d.strengthOf(c.n.ident[strings.LastIndexByte(c.n.ident, '.')+1:]) == noName
}

// isWritten reports whether a word of prose can only be a password that a
// person made up: it has a mark or capitals among its letters and digits.
func isWritten(c *candidate) bool {
	return c.n.isPassword() && isAlnum(c.text[0]) && !strings.ContainsAny(c.text, "()=<>[]{};:,\"'`/|\\") && isHumanMade(c.text) && !isCommonWords(c.text, len(c.text))
}

// isNoArgument reports whether text, which is where a command or a call takes a secret,
// is none: a flag, a path, a word for a secret.
func isNoArgument(c *candidate) bool {
	text := c.text
	return text[0] == '-' || isCommonWords(text, 0) || isPath(text) || isProse(text) && !isPassphrase(text) || isCode(text) || isSource(text) && !c.lit.quoted ||
		strings.Contains(text, ":") && strings.Trim(text, digits+":") == ""
}

// isItem reports whether an element of a list is a secret. It is strict: lists of
// other things, such as tokens of a grammar, have the same names.
func isItem(c *candidate) bool {
	if c.n.strength == strongName {
		return isMixed(c.text) && !strings.Contains(c.text, " ")
	}
	before := strings.TrimRight(c.d.s[max(0, c.lit.start-maxGap):c.lit.start-1], " \t\r\n")
	return isUUID(c.text) || (isKeyLike(c.text) || isVeryRandom(c.text)) && allIn(c.text, &bearerSet) ||
		isPairName(c.n.ident) && lastByte(before) == ',' && hasDigit(c) && isMixed(c.text)
}

// isMember reports whether a value of a map is a secret.
func isMember(c *candidate) bool {
	inName := strings.IndexByte("-/@", byteAt(c.d.s, c.n.begin-1)) >= 0 // a path, the name of a package
	if inName || lists["digest"][strings.ToLower(c.d.fieldBefore(c.lit.start-1))] || strings.ContainsAny(c.text, " \\") {
		return false
	}
	return c.n.strength == strongName && isHumanMade(c.text) && !isIdentifier(c.text) || (isRandom(c.text) || isKeyLike(c.text)) && isItem(c)
}

// isAppPassword reports whether text is four groups of four letters, as mail services
// make them for applications.
func isAppPassword(text string) bool {
	return len(text) == 19 && text[4] == ' ' && text[9] == ' ' && text[14] == ' ' && shapeOf(text).lower == 16
}

// isMixed reports whether text has digits, marks or an unusual spelling beside
// its letters, as passwords have and words do not.
func isMixed(text string) bool {
	sh := shapeOf(text)
	return sh.letters() > 0 && len(text) >= 6 && (sh.digit > 0 || isRandom(text)) && !isWordy(text)
}

// isCredential reports whether text after an authorization scheme is no prose.
func isCredential(c *candidate) bool {
	return !c.lit.quoted && len(c.text) >= 4 && isAlnum(c.text[0]) && !isSource(c.text) && !lists["schemeword"][strings.ToLower(c.text)] && (c.text != strings.ToUpper(c.text) || !isCommonWords(c.text, 0))
}
