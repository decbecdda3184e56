package read

import (
	"slices"
	"sort"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// values reads the text with the parser of its format and asks the judge about the scalars. It returns
// the documents, whose offsets are those of the text: see [reader.keep].
func (d *reader) values(rg *region) (docs []document) {
	name := d.lang.Name
	if d.lang == lex.Unknown && strings.HasPrefix(strings.TrimLeft(d.s, "[ \t\r\n"), "{") {
		name = "json"
	} else if d.lang == lex.Unknown && strings.Contains(d.s, "kind") && strings.Contains(d.s, "Secret") {
		name = "yaml"
	}
	read := formats[name]
	if read == nil {
		return nil
	}
	for from := 0; from < len(d.s); {
		to := len(d.s)
		if i := strings.Index(d.s[from:], lex.SectionEnd); i >= 0 {
			to = from + i + 1
		}
		if to-from <= maxParse {
			doc := parse(read, d.s[from:to])
			doc.move(from)
			d.document(rg, &doc)
			docs = append(docs, doc)
		}
		from = min(len(d.s), to+len(lex.SectionEnd)-1)
	}
	return docs
}

// parse reads a text. A parser that panics has read nothing: the parsers are not ours, and the
// tokens are read in any case.
func parse(read format, text string) (doc document) {
	defer func() {
		if recover() != nil {
			doc = document{}
		}
	}()
	return read(text)
}

func (doc *document) move(by int) {
	for i := range doc.Values {
		doc.Values[i].Start += by
		doc.Values[i].End += by
	}
	for i := range doc.Read {
		doc.Read[i].From += by
		doc.Read[i].To += by
	}
}

// Members of documents, in lower case.
var (
	// labels are members whose text is the name of the other members of the object.
	labels = map[string]bool{"name": true, "key": true, "parametername": true, "parameterkey": true, "variable": true, "id": true}
	// labelled are members that have no name of their own.
	labelled = map[string]bool{"": true, "value": true, "default": true, "defaultvalue": true, "parametervalue": true, "content": true, "string": true, "secretstring": true, "_value": true}
)

const inDocument = "value of a document"

// document masks the secrets of a document.
func (d *reader) document(rg *region, doc *document) {
	sensitive := map[*Step]map[string]bool{} // the attributes of a resource in the state of Terraform
	for _, v := range doc.Values {
		text, up := d.s[v.Start:v.End], v.Path.Up
		if up == nil {
			continue
		}
		switch name := strings.ToLower(v.Path.Name); {
		case name == "kind" && text == "Secret":
			up.isSecret = true
		case name == "type":
			up.kind = text
		case name == "sensitive" && text == "true":
			up.isSensitive = true
		case labels[name] && up.label == "":
			up.label = text
		case name == "value" && up.Up != nil && up.Up.Up != nil && up.Up.Up.Name == "sensitive_attributes":
			object := up.Up.Up.Up
			if sensitive[object] == nil {
				sensitive[object] = map[string]bool{}
			}
			sensitive[object][text] = true
		}
	}
	for i := range doc.Values {
		v := &doc.Values[i]
		d.rate(v.Path)
		lit := literal{v.Start, v.End, v.Quoted, rg.cursorAt(v.End)}
		switch {
		case v.Path.inSecret:
			d.secretValue(judge.Name{Rule: secretValue}, v.Start, v.End)
		case v.Path.inSensitive || isAttribute(v.Path, sensitive):
			d.secret(judge.Name{Ident: "sensitive", Strength: judge.Strong, Rule: "sensitive value", Begin: v.Start, End: v.Start}, inDocument, judge.Assigned, lit, "")
		default:
			d.document1(v, lit)
		}
	}
}

// isAttribute reports whether a value is a secret among the attributes of a resource in a state of Terraform: the state
// marks it as sensitive, or the resource makes secrets.
func isAttribute(path *Step, sensitive map[*Step]map[string]bool) bool {
	up := path.Up
	for up != nil && up.Name != "attributes" {
		path, up = up, up.Up
	}
	if up == nil {
		return false
	}
	instance := up.Up
	if sensitive[instance][path.Name] {
		return true
	}
	if instance == nil || instance.Up == nil || instance.Up.Up == nil {
		return false
	}
	return stateSecrets[instance.Up.Up.kind][path.Name]
}

// stateSecrets are the types of resources that make secrets, with the attributes that hold them.
var stateSecrets = map[string]map[string]bool{
	"random_password": {"result": true, "bcrypt_hash": true},
	"tls_private_key": {"private_key_pem": true, "private_key_openssh": true, "private_key_pem_pkcs8": true},
}

// document1 masks a value if its own name, or that of an object around it, shows that it is a secret.
func (d *reader) document1(v *Value, lit literal) {
	n, bind := v.Path.name, v.Bind
	if up := v.Path.Up; n.Strength == judge.NoName && up != nil && labelled[strings.ToLower(v.Path.Name)] {
		if up.label != "" {
			n = d.cache.Of(d.Names, identifier(up.label))
		} else if v.Path.Name != "" || bind == judge.Element {
			n = up.name
		}
		if bind == judge.Item {
			n = judge.Name{}
		}
	}
	if n.Strength != judge.NoName {
		d.place(&n, v)
		if found := len(d.Found); d.candidate(n, inDocument, bind, lit) || len(d.Found) > found || n.Strength >= judge.Medium {
			return
		}
	}
	if n = v.Path.of; n.Strength < judge.Medium {
		return
	}
	if bind = judge.Member; v.Path.Name == "" {
		bind = judge.Item
	}
	d.place(&n, v)
	d.secret(n, inDocument, bind, lit, v.Path.Name)
}

// place sets where the name of the value is: before it on its line, or at its begin.
func (d *reader) place(n *judge.Name, v *Value) {
	const most = 128
	before := d.s[max(lex.LineBegin(d.s, v.Start), v.Start-most):v.Start]
	n.Begin, n.End = v.Start, v.Start
	if i := strings.LastIndex(before, n.Ident); i >= 0 && n.Ident != "" {
		n.Begin = v.Start - len(before) + i
		n.End = n.Begin + len(n.Ident)
	}
}

// rate finds out what the names of a step and those around it show.
func (d *reader) rate(s *Step) {
	if s == nil || s.isRated {
		return
	}
	s.isRated = true
	s.name = d.cache.Of(d.Names, identifier(s.Name))
	if up := s.Up; up != nil {
		d.rate(up)
		s.of = up.of
		s.inSecret = up.inSecret || up.isSecret && secretValues[strings.ToLower(s.Name)]
		s.inSensitive = up.inSensitive || up.isSensitive && labelled[strings.ToLower(s.Name)]
	}
	if s.name.Strength >= judge.Medium {
		s.of = s.name
	}
}

// identifier returns the name of a member or column as an identifier.
func identifier(name string) string {
	return strings.Trim(strings.NewReplacer(" ", "_", "(", "_", ")", "", "/", ".", ":", ".").Replace(name), "_")
}

// keep removes what the tokens show in the documents but is not a scalar or a comment, or not one of a
// Secret: names and structure are not secrets. A document that is cut within secrets hides what follows.
func (d *reader) keep(rg *region, docs []document) {
	remove := func(s judge.Span) bool {
		return slices.ContainsFunc(docs, func(doc document) bool { return doc.denies(s) }) && !d.inComment(rg, s.Start)
	}
	d.Found = slices.DeleteFunc(d.Found, remove)
	d.Open = slices.DeleteFunc(d.Open, func(s judge.Span) bool {
		return slices.ContainsFunc(docs, func(doc document) bool { return doc.isRead(s.Start) })
	})
	for _, doc := range docs {
		if n := len(doc.Values); doc.Cut && n > 0 {
			if last := doc.Values[n-1]; last.Path.of.Strength == judge.Strong {
				d.Open = append(d.Open, judge.Span{Start: last.Start, End: doc.Read[len(doc.Read)-1].To, Reason: judge.Reason{Rule: last.Path.of.Rule}, Hidden: "secrets without an end"})
			}
		}
	}
}

func (d *reader) inComment(rg *region, at int) bool {
	t, ok := rg.cursorAt(at).token()
	return ok && t.Kind == lex.Comment
}

// denies reports whether the span begins or ends in the structure of the document, or is a value beside
// the data of a Secret.
func (doc *document) denies(s judge.Span) bool {
	if !doc.isRead(s.Start) {
		return false
	}
	first, last := doc.valueAt(s.Start), doc.valueAt(s.End-1)
	if first == nil || last == nil {
		return true
	}
	return s.Rule == secretValue && s.Start <= first.Start && s.End >= first.End && !first.Path.inSecret
}

// isRead reports whether the parser understood the text at at.
func (doc *document) isRead(at int) bool {
	i := sort.Search(len(doc.Read), func(i int) bool { return doc.Read[i].To > at })
	return i < len(doc.Read) && doc.Read[i].From <= at
}

// valueAt returns the value that has the byte at at, or nil.
func (doc *document) valueAt(at int) *Value {
	i := sort.Search(len(doc.Values), func(i int) bool { return doc.Values[i].End > at })
	if i == len(doc.Values) || doc.Values[i].Start > at {
		return nil
	}
	return &doc.Values[i]
}

// secretValue is the rule of the values of a Secret.
const secretValue = "value of a Secret" //nolint:gosec // no credential

// secretValues are the members of a Secret that hold its values.
var secretValues = map[string]bool{"data": true, "stringdata": true}

// secretValue masks the value s[begin:end] of a Secret.
func (d *reader) secretValue(n judge.Name, begin, end int) {
	if begin >= end {
		return
	}
	if text := d.s[begin:end]; len(text) >= 3 && !d.Names.IsPlaceholder(text) && !judge.IsReference(text) && !judge.IsCommonWords(text, 0) {
		d.Found = append(d.Found, judge.Span{Start: begin, End: end, Reason: judge.Reason{Class: "secret", Rule: n.Rule}})
	}
}
