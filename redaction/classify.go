package redaction

import "strings"

// A candidate is a text that may be a secret: a binding connects it with a name, or its
// position shows it, such as the column of a table.
type candidate struct {
	d    *detector
	n    nameRef
	bind binding
	lit  literal
	text string
}

// A verdict is the result of a classifier for a candidate.
type verdict uint8

const (
	noOpinion verdict = iota
	masked
	left
)

// A classifier is a named predicate. It is asked about the candidates that its
// columns select.
type classifier struct {
	name string
	// strengths and bindings select by the name; 0 selects all.
	strengths, bindings uint16
	quotes              quotes
	is                  func(c *candidate) bool
	// then is the verdict if the predicate holds, otherwise the one if it does not.
	then, otherwise verdict
}

// quotes select candidates by their quotes.
type quotes uint8

const (
	quotedOrBare quotes = iota
	onlyQuoted
	onlyBare
)

func bitsOf[T ~uint8](all ...T) (bits uint16) {
	for _, v := range all {
		bits |= 1 << v
	}
	return bits
}

var strong, medium, weak, vendor = bitsOf(strongName), bitsOf(mediumName), bitsOf(weakName), bitsOf(vendorName)

// classifiers are asked in order. The first one with an opinion decides. A text that
// is recognizably something else is no secret, with any name. Of a strong
// name, nothing more is required; the weaker the name, the more the text has to
// look like a key.
var classifiers = []classifier{
	{name: "too short", is: func(c *candidate) bool { return len(c.text) < 3 }, then: left},
	{name: "too short for a key", strengths: weak | vendor, bindings: ^bitsOf(item), is: func(c *candidate) bool { return len(c.text) < 12 }, then: left},
	{name: "the name itself", is: func(c *candidate) bool { return strings.EqualFold(c.text, c.n.ident) }, then: left},
	{name: "placeholder", is: func(c *candidate) bool { return c.d.isPlaceholder(c.text) }, then: left},
	{name: "reference", is: ofText(isReference), then: left},
	{name: "escaped bytes", is: ofText(isByteEscapes), then: left},
	{name: "decimal number", is: ofText(isFloat), then: left},
	{name: "schema", is: ofText(isSchema), then: left},
	{name: "public key", is: ofText(isPublicKey), then: left},
	{name: "function of another name", bindings: bitsOf(called), is: isOtherFunction, then: left},
	{name: "flag", bindings: bitsOf(spaced), quotes: onlyBare, is: func(c *candidate) bool { return c.text[0] == '-' }, then: left},
	{name: "password in a sentence", bindings: bitsOf(written), is: isWritten, then: masked, otherwise: left},
	{name: "no argument", bindings: bitsOf(argument, cell, item, member), is: isNoArgument, then: left},
	{name: "number of a row", is: func(c *candidate) bool { return allIn(c.text, &digitSet) && lastWordOf(c.n.ident) == "id" }, then: left},
	{name: "end of another literal", quotes: onlyQuoted, is: closesLiteral, then: left},
	{name: "markup", strengths: medium | weak | vendor, quotes: onlyQuoted, is: func(c *candidate) bool { return len(c.text) > 200 && strings.ContainsAny(c.text, " <>") }, then: left},
	{name: "name of a resource", is: namesResource, then: left},

	{name: "result of a test", bindings: bitsOf(assigned), quotes: onlyBare, is: func(c *candidate) bool { return c.n.ident == "PASS" && byteAt(c.d.s, c.n.end) == ':' }, then: left},
	{name: "element of a list", bindings: bitsOf(item), is: isItem, then: masked, otherwise: left},
	{name: "value of a map", bindings: bitsOf(member), is: isMember, then: masked, otherwise: left},
	{name: "argument", strengths: strong, bindings: bitsOf(argument), is: always, then: masked},
	{name: "cell", strengths: strong, bindings: bitsOf(cell), is: ofText(isCommunity), then: masked, otherwise: left},

	{name: "common words", strengths: strong, is: func(c *candidate) bool { return isCommonWords(c.text, 1) }, then: left},
	{name: "common words", strengths: medium, is: func(c *candidate) bool { return isCommonWords(c.text, 2) }, then: left},
	{name: "path", is: ofText(isPath), then: left},
	{name: "prose", strengths: strong, is: func(c *candidate) bool { return isProse(c.text) && !(c.n.isPassword() && isPassphrase(c.text)) }, then: left},
	{name: "code", strengths: medium | weak | vendor, is: ofText(isSource), then: left},

	{name: "code", strengths: strong, quotes: onlyQuoted, is: ofText(isCode), then: left},
	{name: "argument of a look-up", strengths: strong | medium, bindings: bitsOf(called), is: looksUp, then: left},
	{name: "quoted after a blank", strengths: strong, bindings: bitsOf(spaced), quotes: onlyQuoted, is: isSpacedQuoted, then: masked, otherwise: left},
	{name: "quoted in a list", strengths: strong, bindings: bitsOf(listed), quotes: onlyQuoted, is: isListed, then: masked, otherwise: left},
	{name: "quoted value", strengths: strong, quotes: onlyQuoted, is: always, then: masked},
	{name: "stated password", strengths: strong, bindings: bitsOf(stated), is: isStatedSecret, then: masked, otherwise: left},
	{name: "password in a sentence", strengths: strong, bindings: bitsOf(spaced), is: isWritten, then: masked},
	{name: "word after a blank", strengths: strong, bindings: bitsOf(spaced), is: isSpacedBare, then: masked, otherwise: left},
	{name: "text of an element", strengths: strong, bindings: bitsOf(element), is: always, then: masked},

	{name: "no key", strengths: medium, is: isKey, otherwise: left},
	{name: "key after a blank", strengths: medium, bindings: bitsOf(spaced), is: func(c *candidate) bool { return isFlag(c.d.s, c.n.begin) && hasDigit(c.text) || isVeryRandom(c.text) }, then: masked, otherwise: left},
	{name: "quoted key", strengths: medium, quotes: onlyQuoted, is: always, then: masked},

	{name: "number", strengths: weak, is: ofText(isNumber), then: left},
	{name: "user and password in base64", strengths: weak, is: func(c *candidate) bool { return isEncodedPair(c.text) && len(c.text) >= 12 }, then: masked},
	{name: "SHA-1 of a lock file", strengths: weak, quotes: onlyBare, is: isFileDigest, then: left},
	{name: "random key", strengths: weak, is: isRandomKey, then: masked, otherwise: left},
	{name: "key of a service", strengths: vendor, is: isServiceKey, then: masked, otherwise: left},

	// What is left are bare values of strong names, and bare keys of medium names.
	{name: "code", is: isBareCode, then: left},
	{name: "operator", is: func(c *candidate) bool { return strings.IndexByte("&*@:-!^#", c.text[0]) >= 0 && !isRandom(c.text) }, then: left},
	{name: "field of a connection string", is: isField, then: masked},
	{name: "begin of an expression", is: beginsExpression, then: left},
	{name: "no identifier", is: ofText(isIdentifier), otherwise: masked},
	{name: "variable", is: isVariable, then: left},
	{name: "identifier", is: isBareValue, then: masked, otherwise: left},
}

// applies reports whether the columns of k select c.
func (k *classifier) applies(c *candidate) bool {
	return (k.strengths == 0 || k.strengths>>c.n.strength&1 == 1) && (k.bindings == 0 || k.bindings>>c.bind&1 == 1) &&
		(k.quotes == quotedOrBare || (k.quotes == onlyQuoted) == c.lit.quoted)
}

// isSecret decides whether the literal, bound to the name n by bind, is a secret.
// d.why is the classifier that decided.
func (d *detector) isSecret(n nameRef, bind binding, lit literal) bool {
	d.work += valueWork + lit.end - lit.start
	c := &d.asked
	*c = candidate{d, n, bind, lit, d.text(lit)}
	for i := range classifiers {
		k := &classifiers[i]
		if !k.applies(c) {
			continue
		}
		v := k.otherwise
		if k.is(c) {
			v = k.then
		}
		if v != noOpinion {
			d.place, d.why = n.form, k.name
			if v == left {
				d.miss(n.rule, k.name, lit.start, lit.end)
			}
			return v == masked
		}
	}
	return false
}
