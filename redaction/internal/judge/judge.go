// Package judge decides whether a value is a secret. It knows nothing of how the value was
// found: a reader gives it a [Candidate], which is a text, the name that the text is bound to, and
// how the two are bound.
//
// judge.go has the one table of decisions, in order: read it first. predicates.go has the predicates
// that look at the surroundings of the text, value.go those that recognize a text as something
// other than a secret, shape.go those that recognize generated and made-up text. name.go
// rates names by the rules of names.rules, placeholder.go has the form of a placeholder, and
// words.txt the words that all of them compare with.
package judge

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A Binding is how a name is tied to a value.
type Binding uint8

// The bindings, by what stands in the text.
const (
	Unbound  Binding = iota
	Assigned         // name = value, name: value, "name" => value
	Fallback         // getenv("name") || value, ${name:-value}
	Compared         // name == value
	Listed           // "name", "value"
	Called           // name("value")
	Element          // <name>value</name>
	Spaced           // name 'value', --name value
	Stated           // name is value
	Paired           // key="name" value="value"
	Written          // "change the password to value": only what looks like one
	Item             // of a list
	Member           // of a map
	Argument         // of a call or command
	Cell             // of a table
)

// BindingNames are the bindings that a form rule may name.
var BindingNames = [...]string{"", "assigned", "fallback", "compared", "listed", "called", "element", "spaced", "stated", "paired", "written"}

// A Candidate is a text that may be a secret: a binding connects it with a name, or its
// position shows it, such as the column of a table. It is text[Start:End].
type Candidate struct {
	Names      *Names
	Name       Name
	Bind       Binding
	S          string
	Start, End int
	// Quoted is set if the text is in delimiters. Next is the offset behind the closing one.
	Quoted bool
	Next   int
	// Own is the name of the member or column itself, where Name is that of the container.
	Own string
	// InCode is set if the name is one of code, not one in a literal or a comment. InData is set if the text is
	// one of a language without expressions, such as YAML, or an argument of a command.
	InCode, InData bool

	text string
}

// A Reason is why a range is masked, or is not.
type Reason struct {
	Class, Rule string
	// Place is the position of the value relative to its name, or "". Why is the
	// predicate that decided, or "".
	Place, Why string
}

// A Span is a range of a text that holds a secret.
type Span struct {
	Start, End int
	Reason
	// Hidden is set if a reader of the masked text misses more than a literal: the reason.
	Hidden string
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
	is                  func(c *Candidate) bool
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

var strong, medium, weak, vendor = bitsOf(Strong), bitsOf(Medium), bitsOf(Weak), bitsOf(Vendor)

// classifiers are asked in order. The first one with an opinion decides. A text that
// is recognizably something else is not a secret, with any name. Of a strong
// name, nothing more is required; the weaker the name, the more the text has to
// look like a key.
var classifiers = []classifier{
	{name: "too short", is: func(c *Candidate) bool { return len(c.text) < 3 }, then: left},
	{name: "the name itself", is: func(c *Candidate) bool { return strings.EqualFold(c.text, c.Name.Ident) }, then: left},
	{name: "reference", is: ofText(IsReference), then: left},
	{name: "escaped bytes", is: func(c *Candidate) bool {
		return strings.Count(c.text, `\x`)*4+strings.Count(c.text, `\u`)*6+strings.Count(c.text, `\U`)*10+3 >= len(c.text)
	}, then: left},
	{name: "schema", is: func(c *Candidate) bool {
		return lex.BeginsWith(c.text, heads["schema"]) || strings.HasPrefix(c.text, "scram-sha-")
	}, then: left},
	{name: "package", strengths: medium | weak | vendor, is: func(c *Candidate) bool {
		return lex.BeginsWith(c.text, heads["package"]) && strings.ContainsAny(c.text, "./")
	}, then: left},
	{name: "public key", is: func(c *Candidate) bool { return lex.BeginsWith(c.text, heads["publickey"]) }, then: left},
	{name: "function of another name", bindings: bitsOf(Called), is: func(c *Candidate) bool {
		return c.Names.Of(c.Name.Ident[strings.LastIndexByte(c.Name.Ident, '.')+1:]).Strength == NoName
	}, then: left},
	{name: "flag", bindings: bitsOf(Spaced), quotes: onlyBare, is: func(c *Candidate) bool { return c.text[0] == '-' }, then: left},
	{name: "password in a sentence", bindings: bitsOf(Written), is: isWritten, then: masked, otherwise: left},
	{name: "no argument", bindings: bitsOf(Argument, Cell, Item, Member), is: isNoArgument, then: left},
	{name: "number of a row", is: func(c *Candidate) bool { return lex.AllIn(c.text, &lex.DigitSet) && lastWordOf(c.Name.Ident) == "id" }, then: left},
	{name: "name of a resource", is: namesResource, then: left},
	{name: "name of a flag or a variable", quotes: onlyQuoted, is: namesSetting, then: left},
	{name: "term in an element", bindings: bitsOf(Element), is: func(c *Candidate) bool {
		return c.text[0] == '`' || strings.Contains(c.text, ".") && isChain(c.text) && (c.Name.Strength != Strong || c.isExpression())
	}, then: left},
	{name: "result of a test", bindings: bitsOf(Assigned), quotes: onlyBare, is: func(c *Candidate) bool { return c.Name.Ident == "PASS" && lex.ByteAt(c.S, c.Name.End) == ':' }, then: left},
	{name: "element of a list", bindings: bitsOf(Item), is: isItem, then: masked, otherwise: left},
	{name: "value of a map", bindings: bitsOf(Member), is: isMember, then: masked, otherwise: left},
	{name: "argument", strengths: strong, bindings: bitsOf(Argument), is: always, then: masked},
	{name: "cell", strengths: strong, bindings: bitsOf(Cell), is: ofText(IsCommunity), then: masked, otherwise: left},

	{name: "common words", strengths: strong | medium, is: func(c *Candidate) bool {
		return IsCommonWords(c.text, 1) && !(IsFlag(c.S, c.Name.Begin) && strings.Contains(c.text, ".") && isDotted(c.text)) // --token abc.def9
	}, then: left},
	{name: "path", is: ofText(IsPath), then: left},
	{name: "prose", strengths: strong, is: func(c *Candidate) bool { return IsProse(c.text) && !(c.Name.IsPassword() && isPassphrase(c.text)) }, then: left},
	{name: "code", strengths: medium | weak | vendor, is: (*Candidate).isExpression, then: left},

	{name: "code", strengths: strong, quotes: onlyQuoted, is: (*Candidate).isExpression, then: left},
	{name: "argument of a look-up", strengths: strong | medium, bindings: bitsOf(Called), is: func(c *Candidate) bool { return lists["lookupcall"][SplitWords(c.Name.Ident)[0]] }, then: left},
	{name: "quoted after a blank", strengths: strong, bindings: bitsOf(Spaced), quotes: onlyQuoted, is: isSpacedQuoted, then: masked, otherwise: left},
	{name: "quoted in a list", strengths: strong, bindings: bitsOf(Listed), quotes: onlyQuoted, is: func(c *Candidate) bool {
		isWords := IsWordLike(strings.ReplaceAll(c.text, "_", "")) && !(IsConstant(c.Name.Ident) && strings.Contains(c.text, "_"))
		return !isWords && (hasDigit(c.text) || c.text != strings.ToUpper(c.text))
	}, then: masked, otherwise: left},
	{name: "quoted value", strengths: strong, quotes: onlyQuoted, is: always, then: masked},
	{name: "stated password", strengths: strong, bindings: bitsOf(Stated), is: func(c *Candidate) bool {
		return len(c.text) >= 5 && !IsWordLike(c.text) && !namesAlgorithm(c.text) && !strings.Contains(c.text, "'") && !c.isExpression()
	}, then: masked, otherwise: left},
	{name: "password in a sentence", strengths: strong, bindings: bitsOf(Spaced), is: isWritten, then: masked},
	{name: "word after a blank", strengths: strong, bindings: bitsOf(Spaced), is: isSpacedBare, then: masked, otherwise: left},

	{name: "no key", strengths: medium, is: func(c *Candidate) bool {
		return isLikelyKey(c.text) || c.Quoted && containsKey(c.text) || isHumanKey(c) || c.Bind == Spaced && len(c.text) >= 8 && !c.isExpression()
	}, otherwise: left},
	{name: "key after a blank", strengths: medium, bindings: bitsOf(Spaced), is: func(c *Candidate) bool { return IsFlag(c.S, c.Name.Begin) && hasDigit(c.text) || IsVeryRandom(c.text) }, then: masked, otherwise: left},
	{name: "quoted key", strengths: medium, quotes: onlyQuoted, is: always, then: masked},

	{name: "number", strengths: weak, is: ofText(isNumber), then: left},
	{name: "user and password in base64", strengths: weak, is: func(c *Candidate) bool { return IsEncodedPair(c.text) && len(c.text) >= 12 }, then: masked},
	{name: "SHA-1 of a lock file", strengths: weak, quotes: onlyBare, is: func(c *Candidate) bool {
		return len(c.text) == 40 && lex.AllIn(c.text, &lex.LowerHex) && lex.ByteAt(c.S, c.Name.End) == ':'
	}, then: left},
	{name: "random key", strengths: weak, is: func(c *Candidate) bool {
		return (IsVeryRandom(c.text) || IsKeyLike(c.text) && isKeyLength(len(c.text))) && (c.Quoted || shapeOf(c.text).other <= len(c.text)/6)
	}, then: masked, otherwise: left},
	{name: "key of a service", strengths: vendor, is: isServiceKey, then: masked, otherwise: left},

	// What is left are bare values of strong names, and bare keys of medium names.
	{name: "field of a connection string", is: func(c *Candidate) bool { // behind the first, with a capital, unlike names in code
		return c.after() == ';' && lex.ByteAt(c.S, c.Name.Begin-1) == ';' && lex.IsUpper(c.Name.Ident[0])
	}, then: masked},
	{name: "code", is: func(c *Candidate) bool { // but a constant may be a password that looks like an expression
		return c.isExpression() && !(IsConstant(c.Name.Ident) && isDotted(c.text)) || isNumber(c.text) || looksLikeVersion(c.text)
	}, then: left},
	{name: "operator", is: func(c *Candidate) bool { return strings.IndexByte("&*@:-!^#", c.text[0]) >= 0 && !IsRandom(c.text) }, then: left},
	{name: "begin of an expression", is: func(c *Candidate) bool {
		return c.after() == '(' || c.after() == '{' || strings.IndexByte("[.", lex.ByteAt(c.S, c.End)) >= 0
	}, then: left},
	{name: "no identifier", is: ofText(IsIdentifier), otherwise: masked},
	{name: "variable", is: isVariable, then: left},
	{name: "identifier", is: isBareValue, then: masked, otherwise: left},
}

// Judge decides whether the candidate is a secret, and returns the name of the predicate that
// decided.
func (c *Candidate) Judge() (secret bool, why string) {
	c.text = c.S[c.Start:c.End]
	for i := range classifiers {
		k := &classifiers[i]
		if k.strengths != 0 && k.strengths>>c.Name.Strength&1 == 0 || k.bindings != 0 && k.bindings>>c.Bind&1 == 0 || k.quotes != quotedOrBare && (k.quotes == onlyQuoted) != c.Quoted {
			continue
		}
		v := k.otherwise
		if k.is(c) {
			v = k.then
		}
		if v != noOpinion {
			return v == masked, k.name
		}
	}
	return false, ""
}
