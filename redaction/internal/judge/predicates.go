package judge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

func always(*Candidate) bool { return true }

// ofText is the predicate of a candidate's text.
func ofText(is func(text string) bool) func(c *Candidate) bool {
	return func(c *Candidate) bool { return is(c.text) }
}

func hasDigit(text string) bool { return shapeOf(text).digit > 0 }

// namesResource reports whether the name, such as existingSecret, refers to a Kubernetes
// object that holds the secret, and the text is the name of an object.
func namesResource(c *Candidate) bool {
	words := SplitWords(c.Name.Ident)
	if len(words) < 2 || !strings.HasPrefix(lastWord(words), "secret") || !lex.AllIn(c.text, &resourceSet) {
		return false
	}
	if before := words[len(words)-2]; !lists["resource"][before] && words[0] != "existing" && !(before == "client" && isClientReference(c)) {
		return false
	}
	if strings.Contains(c.text, "/") && !slices.Contains(words, "tls") { // auth-tls-secret: namespace/name
		return false
	}
	return words[0] == "existing" || !hasDigit(c.text) && !IsRandom(c.text)
}

// isClientReference reports whether the value of a client secret refers to it. Unlike tlsSecret, the name is
// also that of the secret itself: a reference is named as a client, or is a term of Markdown beside the name's.
func isClientReference(c *Candidate) bool {
	return strings.HasSuffix(strings.TrimSuffix(c.text, "-secret"), "-client") ||
		lex.ByteAt(c.S, c.Name.End) == '`' && lex.ByteAt(c.S, c.Start-1) == '`'
}

// isSpacedQuoted reports whether a quoted text after a name and a blank is its value, as in SQL
// and command lines, and not what a sentence such as "pass `x` to f" or a message is about.
func isSpacedQuoted(c *Candidate) bool {
	switch {
	case IsFlag(c.S, c.Name.Begin):
		return true
	case lex.ByteAt(c.S, c.Start-1) == '`', c.InCode: // a term in a text, or what code calls the name for, unlike #define PASSWORD "..."
		return !strings.EqualFold(c.Name.Ident, "pass") && !strings.ContainsAny(c.text, "/=") && (IsHumanMade(c.text) || IsRandom(c.text) || !c.InCode && c.Name.IsPassword() && IsMixed(c.text))
	}
	return !strings.EqualFold(c.Name.Ident, "pass") && !lex.BeginsWith(c.S[c.Next:], []string{" not found", " already ", " does not"})
}

// isSpacedBare reports whether text without quotes after a name and a blank is
// its value: of a flag, a line of a netrc file, a command.
func isSpacedBare(c *Candidate) bool {
	begin := lex.LineBegin(c.S, c.Name.Begin)
	line := strings.ToLower(strings.TrimLeft(c.S[begin:c.Name.Begin], " \t"))
	above := strings.ToLower(strings.TrimLeft(c.S[lex.LineBegin(c.S, max(0, begin-1)):begin], " \t"))
	switch {
	case IsKeyLike(c.text):
		return true
	case c.isExpression():
		return false
	case IsFlag(c.S, c.Name.Begin):
		return true
	case line == "":
		return lists["directive"][c.Name.Ident] || lex.BeginsWith(above, heads["login"])
	}
	return lex.BeginsWith(line, heads["variable"]) || lex.BeginsWith(line, heads["login"]) || (lex.ContainsAny(line, heads["login"]) || lex.BeginsWith(line, heads["setting"])) && !IsWordLike(c.text)
}

// isLikelyKey reports whether the value of a medium name looks like a key.
func isLikelyKey(text string) bool {
	if IsRandom(text) && (hasDigit(text) || len(text) >= 16) || IsKeyLike(text) || IsUUID(text) {
		return true
	}
	return len(text) >= 24 && !strings.Contains(text, " ") && entropy(text) > 3.5 && !IsIdentifier(text) && !IsWordy(text)
}

// isHumanKey reports whether a key that a person made up is assigned: in quotes,
// or as a line of configuration or the field of a query.
func isHumanKey(c *Candidate) bool {
	return IsHumanMade(c.text) && (c.Quoted && c.Bind != Called && c.Bind != Compared || c.Bind == Element ||
		c.Bind == Assigned && (WholeLine(c.S, c.Start) || strings.IndexByte("?&", lex.ByteAt(c.S, c.Name.Begin-1)) >= 0))
}

func isServiceKey(c *Candidate) bool {
	first, _, path := strings.Cut(c.text, "/")
	return !(path && (IsWordy(first) || len(first) >= 3 && IsWordLike(first))) && IsKeyLike(c.text) || len(c.text) >= 14 && IsRandom(c.text) && shapeOf(c.text).other == 0
}

// after returns the byte that follows the candidate and blanks.
func (c *Candidate) after() byte {
	return lex.ByteAt(c.S, lex.Run(c.S, c.End, &lex.BlankSet, 80))
}

// isVariable reports whether an identifier names a secret or a look-up of one.
func isVariable(c *Candidate) bool {
	if hasDigit(c.text) && !IsWordy(c.text) || IsGibberish(c.text) {
		return false
	}
	words := SplitWords(c.text)
	return c.Names.Of(c.text).Strength >= Weak || len(words) > 1 && lists["lookup"][words[0]]
}

// isBareValue reports whether an identifier is a value of configuration.
func isBareValue(c *Candidate) bool {
	after := c.after()
	if !c.InData && (after == ',' || after == ';' || after == ')') { // more likely a name of code
		return IsRandom(c.text) && shapeOf(c.text).digit > 1
	}
	return c.Name.Strength == Medium || hasDigit(c.text) || lineEnders.Has(after) || IsFlag(c.S, c.Name.Begin) || IsGibberish(c.text)
}

// IsWordLike reports whether text is letters that could be a word.
func IsWordLike(text string) bool {
	return shapeOf(text).letters() == len(text) && !IsGibberish(text)
}

// isPassphrase reports whether text is up to seven words with a digit among them and without
// the words of a sentence about a password, or an application password of a mail service.
func isPassphrase(text string) bool {
	words := strings.Fields(text)
	return appPassword.MatchString(text) || hasDigit(text) && len(words) > 1 && len(words) <= 7 && len(text) <= 64 && !strings.ContainsAny(strings.ReplaceAll(text, " ; ", " "), "<>(){}[]:;,\"|\\") &&
		!slices.ContainsFunc(words, func(w string) bool { return lists["saying"][strings.ToLower(strings.Trim(w, ".!?'"))] })
}

// namesSetting reports whether text is the flag or the variable that holds a secret, such as SECRET_KEY,
// a variable in a list of them, or a mark such as --REMOVED--. ROSE_TULIP and --rosegarden may be passwords,
// and so may ROSE_PASS if the name is that of a password or the text an argument.
func namesSetting(c *Candidate) bool {
	family, _, _ := strings.Cut(c.Name.Ident, "_")
	isSibling := IsConstant(c.text) && strings.HasPrefix(c.text, family+"_") // DB_PASSWORD, DB_HOST2
	switch {
	case markForm.MatchString(c.text), isSibling && c.Bind == Listed:
		return true
	case c.Name.IsPassword(), c.Bind == Argument, c.Bind == Spaced:
		return false
	}
	isName := flagForm.MatchString(c.text) || IsConstant(c.text) && IsIdentifier(c.text) && !hasDigit(c.text)
	return isName && !IsRandom(c.text) && c.Names.Of(c.text).Strength >= Weak
}

var (
	flagForm = regexp.MustCompile(`^--?[a-z][a-z-]*$`)
	markForm = regexp.MustCompile(`^--[A-Z]+--$`)
)

var appPassword = regexp.MustCompile(`^[a-z]{4}( [a-z]{4}){3}$`)

// isWritten reports whether a word of prose can only be a password that a
// person made up: it has a mark or capitals among its letters and digits.
func isWritten(c *Candidate) bool {
	text := c.text
	if !c.Name.IsPassword() || !lex.IsAlnum(text[0]) || strings.ContainsAny(text, "()=<>[]{};:,\"'`/|\\") || !IsHumanMade(text) {
		return false
	}
	return hasDigit(text) && (lex.CountIn(text, &passwordMarks) > 0 || IsMixedCase(text))
}

// isNoArgument reports whether text, which is where a command or a call takes a secret,
// is none: a flag, a path, a word for a secret.
func isNoArgument(c *Candidate) bool {
	text := c.text
	return text[0] == '-' || IsCommonWords(text, 0) || IsPath(text) || IsProse(text) && !isPassphrase(text) || c.isExpression() || namesAlgorithm(text)
}

// isItem reports whether an element of a list is a secret. It is strict: lists of
// other things, such as tokens of a grammar, have the same names.
func isItem(c *Candidate) bool {
	text := c.text
	switch final := lastWordOf(c.Name.Ident); {
	case strings.ContainsAny(text, " \\"), strings.Count(text, ".") > 1: // a name such as com.example.app
		return false
	case c.Name.IsPlural():
		return c.isOfMany()
	case c.Name.Strength == Strong && (final == "" || lists["password"][final]):
		return (IsMixed(text) || IsHumanMade(text)) && !looksLikeVersion(text)
	}
	return IsKeyLike(text) || IsVeryRandom(text)
}

// isMember reports whether a value of a map is a secret. The members of a map of passwords may have any
// name, such as max.
func isMember(c *Candidate) bool {
	text := c.text
	switch {
	case lists["digest"][strings.ToLower(c.Own)], strings.ContainsAny(text, " \\"):
		return false
	case c.Name.IsPlural():
		return c.isOfMany()
	case lists["about"][lastWordOf(c.Own)]:
		return false
	}
	return c.Name.Strength == Strong && IsHumanMade(text) && !IsIdentifier(text) || IsRandom(text) && isItem(c) ||
		c.Bind == Member && c.Quoted && strings.Contains(text, ".") && !c.isExpression() && hasDigit(text) && !looksLikeVersion(text)
}

// isOfMany reports whether an element of a list or map of passwords is one: it has a digit or a mark. Among
// credentials are also providers, regions and versions, which are short or have no capitals and one digit.
func (c *Candidate) isOfMany() bool {
	text := c.text
	if c.Name.Strength != Strong && !IsHumanMade(text) && !IsVeryRandom(text) && !(len(text) >= 8 && IsMixedCase(text)) {
		return false
	}
	return len(text) >= 5 && lex.CountIn(text, &lex.LetterSet) > 0 && (hasDigit(text) || lex.CountIn(text, &passwordMarks) > 0) && !looksLikeVersion(text) &&
		!namesAlgorithm(text) && !lex.ContainsAny(strings.ToLower(text), heads["secretname"])
}

// namesAlgorithm reports whether text is names of algorithms, such as sha-256.
func namesAlgorithm(text string) bool {
	for w := range wordsOf(text) {
		if !isAlgorithm(strings.Trim(w, lex.Digits)) && !isAlgorithm(w) && strings.Trim(w, lex.Digits) != "" {
			return false
		}
	}
	return lex.CountIn(text, &lex.LetterSet) > 0
}

// IsMixed reports whether text has digits, marks or an unusual spelling beside
// its letters, as passwords have and words do not.
func IsMixed(text string) bool {
	sh := shapeOf(text)
	return sh.letters() > 0 && len(text) >= 6 && (sh.digit > 0 || IsRandom(text)) && !IsWordy(text)
}

// IsCommunity reports whether the name of an SNMP community, or another word that
// a router takes as a secret, is not a default.
func IsCommunity(text string) bool {
	return len(text) >= 4 && !lists["community"][strings.ToLower(text)]
}

// Sets of bytes of values.
var (
	dottedSet     = lex.SetOf(lex.Digits, lex.Lowers, "._-")
	numberSet     = lex.SetOf(lex.Hexes, ".xX_uUlL")
	passwordMarks = lex.SetOf("!@#$%^&*?~+=")
	resourceSet   = lex.SetOf(lex.Lowers, lex.Digits, "-./")
	lineEnders    = lex.SetOf("\x00\n\r\\-#&}\"'`") // end a value of configuration but no name of code
)

// WholeLine reports whether the value at at ends its line, so that it may hold
// any byte but blanks: a short line of a properties file or of the environment.
func WholeLine(s string, at int) bool {
	const long = 256
	end, begin := lex.Run(s, at, &lex.NotBlank, long), lex.LineBegin(s, at)
	if at-begin > long || end < len(s) && s[end] != '\n' && s[end] != '\r' {
		return false
	}
	before, text := s[begin:at], s[at:end]
	if strings.ContainsAny(text, "\"'`<>{") || strings.HasSuffix(strings.TrimRight(text, "])"), "}") && strings.Contains(before, "{") || closesCode(before, text) {
		return false
	}
	return !strings.HasSuffix(text, ",") && !strings.HasSuffix(text, ";") && !strings.ContainsAny(before, "\"?")
}

// closesCode reports whether a parenthesis of text is part of the code around it
// and not of a password: it opens in text, or was opened before.
func closesCode(before, text string) bool {
	i := strings.IndexAny(text, "()")
	return i >= 0 && (text[i] == '(' || i+1 == len(text) || !lex.IsAlnum(text[i+1]) || strings.Contains(before, "("))
}
