package read

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A step is a member of an object, or an element of a list, on the way to a value. The members of
// one object have the same up.
type step struct {
	name string // "" for an element of a list
	up   *step
	own  judge.Name // of name
	of   judge.Name // of the innermost step around it, or itself, that has the name of a secret

	label       string // the text of the member that names the others
	kind        string // the text of the member type
	isSecret    bool   // an object with kind: Secret
	isSensitive bool   // an object with sensitive: true
}

// A value is a literal or scalar of a document, and where it is in it.
type value struct {
	path *step
	lit  literal
	bind judge.Binding
}

// below returns the step of a member of s, or of an element if the name is "".
func (d *reader) below(s *step, name string) *step {
	below := &step{name: name, up: s, of: s.of}
	if name != "" {
		below.own = d.cache.Of(d.Names, identifier.Replace(name))
	}
	if below.own.Strength >= judge.Medium {
		below.of = below.own
	}
	return below
}

// identifier makes an identifier of the name of a member or column.
var identifier = strings.NewReplacer(" ", "_", "(", "_", ")", "", "/", ".", ":", ".")

// Members of documents, in lower case.
var (
	// labels are members whose text is the name of the other members of the object.
	labels = map[string]bool{"name": true, "key": true, "parametername": true, "parameterkey": true, "variable": true, "id": true}
	// labelled are members that have no name of their own.
	labelled = map[string]bool{"": true, "value": true, "default": true, "defaultvalue": true, "parametervalue": true, "content": true, "string": true, "secretstring": true, "_value": true}
	// secretData are the members of a Secret of Kubernetes that hold its values.
	secretData = map[string]bool{"data": true, "stringdata": true}
	// generated are the resources of Terraform that make secrets, with the attributes that hold them.
	generated = map[string][]string{"random_password": {"result", "bcrypt_hash"}, "tls_private_key": {"private_key_pem", "private_key_openssh", "private_key_pem_pkcs8"}}
)

const (
	inDocument = "value of a document"
	noEnd      = "secrets without an end"
)

// judgeAll masks the secrets among the values of a document, which are in the order of the text.
func (d *reader) judgeAll(values []value, place string) {
	sensitive := map[*step][]string{} // the attributes of a resource in the state of Terraform
	for _, v := range values {
		text, up := d.s[v.lit.start:v.lit.end], v.path.up
		if up == nil {
			continue
		}
		switch name := strings.ToLower(v.path.name); {
		case name == "kind" && text == "Secret":
			up.isSecret = true
		case name == "type":
			up.kind = text
		case name == "sensitive" && text == "true":
			up.isSensitive = true
		case labels[name] && up.label == "":
			up.label = text
		case name == "value":
			if list := up.above("sensitive_attributes"); list != nil {
				sensitive[list.up] = append(sensitive[list.up], text)
			}
		}
	}
	for _, v := range values {
		inSecret, inSensitive := false, false
		for s, depth := v.path, 0; s.up != nil && depth < maxSteps; s, depth = s.up, depth+1 {
			name := strings.ToLower(s.name)
			inSecret = inSecret || s.up.isSecret && secretData[name]
			inSensitive = inSensitive || s.up.isSensitive && labelled[name]
			if s.up.name == "attributes" {
				inSensitive = inSensitive || slices.Contains(sensitive[s.up.up], s.name) || s.up.above("instances") != nil && slices.Contains(generated[s.up.above("instances").up.kind], s.name)
			}
		}
		switch n := (judge.Name{Ident: "sensitive", Strength: judge.Strong, Rule: "sensitive value", Begin: v.lit.start, End: v.lit.start}); {
		case inSecret:
			if text := d.s[v.lit.start:v.lit.end]; len(text) >= 3 && !d.Names.IsPlaceholder(text) && !judge.IsReference(text) && !judge.IsCommonWords(text, 0) {
				d.Found = append(d.Found, judge.Span{Start: v.lit.start, End: v.lit.end, Reason: judge.Reason{Class: "secret", Rule: "value of a Secret"}})
			}
		case inSensitive:
			d.secret(n, place, judge.Assigned, v.lit, "")
		default:
			judgeNamed(d, v, place)
		}
	}
}

// elements masks the secrets in an element of XML, whose name n is that of several secrets and whose content is at c.
func elements(d *reader, n judge.Name, place string, c cursor) {
	begin := c.offset()
	if c.rg.code || begin < d.elementEnd || strings.IndexByte("<:", lex.ByteAt(d.s, n.Begin-1)) < 0 || strings.HasSuffix(strings.TrimRight(d.s[:begin], " \t\r\n"), "/>") {
		return
	}
	var values []value
	add := func(path *step, from, to int) {
		if lit := trim(d.s, literal{from, to, true, c.rg.cursorAt(to)}); lit.start < lit.end {
			values = append(values, value{path: path, lit: lit, bind: judge.Assigned})
		}
	}
	in := xml.NewDecoder(strings.NewReader(d.s[begin:c.rg.to]))
	in.Strict = false
	root := &step{name: n.Ident, own: n, of: n}
	for top, depth := root, 0; depth >= 0; {
		at := begin + int(in.InputOffset())
		token, err := in.RawToken()
		d.elementEnd = begin + int(in.InputOffset())
		if errors.Is(err, io.EOF) && c.rg.isText && d.lang.Kind == lex.Markup && n.Strength == judge.Strong {
			d.stop(begin, n, noEnd)
		}
		if err != nil {
			break
		}
		d.work++
		switch t := token.(type) {
		case xml.StartElement:
			depth, top = depth+1, d.below(top, t.Name.Local)
			for _, a := range t.Attr {
				if i := strings.Index(d.s[at:d.elementEnd], a.Value); labelled[strings.ToLower(a.Name.Local)] && i >= 0 {
					add(top, at+i, at+i+len(a.Value))
				}
			}
		case xml.EndElement:
			depth, top = depth-1, top.up
		case xml.CharData:
			if strings.HasPrefix(d.s[at:], "<![CDATA[") {
				add(top, at+len("<![CDATA["), d.elementEnd-len("]]>"))
			} else {
				add(top, at, d.elementEnd)
			}
		}
	}
	d.judgeAll(values, place)
}

// maxSteps is how far above a value what it belongs to is searched.
const maxSteps = 16

// above returns the step with the name above s, which is at most three steps away, or nil.
func (s *step) above(name string) *step {
	for range 3 {
		if s = s.up; s == nil || s.up == nil {
			return nil
		} else if s.name == name {
			return s
		}
	}
	return nil
}

// judgeNamed masks a value if its own name, or that of an object around it, shows that it is a secret.
func judgeNamed(d *reader, v value, place string) {
	n, up := v.path.own, v.path.up
	if n.Strength == judge.NoName && up != nil && v.path.name != "" && labelled[strings.ToLower(v.path.name)] {
		if n = up.own; up.label != "" {
			n = d.cache.Of(d.Names, identifier.Replace(up.label))
		}
	}
	if n.Strength != judge.NoName {
		n.Begin, n.End = v.lit.start, v.lit.start
		if found := len(d.Found); d.candidate(n, place, v.bind, v.lit) || len(d.Found) > found || n.Strength >= judge.Medium {
			return
		}
	}
	if n = v.path.of; n.Strength < judge.Medium {
		return
	}
	bind := judge.Member
	if v.path.name == "" {
		bind = judge.Item
	}
	n.Begin, n.End = v.lit.start, v.lit.start
	d.secret(n, place, bind, v.lit, v.path.name)
}
