package read

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
)

// readXML reads the attributes and the texts of the elements of an XML text, up to what does not parse. In a
// property list, a key names the element behind it. It has no structure in [document.Read]: files of
// these names may be HTML or a template.
func readXML(text string) (doc document) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	type element struct {
		step *Step
		key  string // of a property list, for the next element
	}
	stack := []element{{step: &Step{}}}
	for {
		from := int(decoder.InputOffset())
		token, err := decoder.RawToken()
		if err != nil || len(stack) > maxNesting {
			return doc
		}
		to := int(decoder.InputOffset())
		if to > len(text) || from > to {
			return document{}
		}
		raw := text[from:to]
		top := &stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			if top.key != "" && name != "key" {
				name, top.key = top.key, ""
			}
			step := &Step{Name: name, Up: top.step}
			doc.attributes(text, from, to, step)
			stack = append(stack, element{step: step})
		case xml.EndElement:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case xml.CharData:
			start, end := from, to
			if strings.HasPrefix(raw, "<![CDATA[") && strings.HasSuffix(raw, "]]>") {
				start, end = from+len("<![CDATA["), to-len("]]>")
			}
			start = skipSpace(text[:end], start)
			end = start + len(strings.TrimRight(text[start:end], " \t\r\n"))
			if start >= end {
				continue
			}
			if top.step.Name == "key" && len(stack) > 1 {
				stack[len(stack)-2].key = text[start:end]
			}
			doc.add(&Step{Up: top.step}, start, end, false, judge.Element)
		}
	}
}

// attributes adds the attributes of the tag text[from:to].
func (doc *document) attributes(text string, from, to int, step *Step) {
	for at := from + 1; at < to; {
		eq := strings.IndexByte(text[at:to], '=')
		if eq < 0 {
			return
		}
		fields := strings.Fields(text[at : at+eq])
		at = skipSpace(text[:to], at+eq+1)
		if at >= to || len(fields) == 0 {
			return
		}
		name := fields[len(fields)-1]
		name = name[strings.LastIndexByte(name, ':')+1:]
		if q := text[at]; q == '"' || q == '\'' {
			n := strings.IndexByte(text[at+1:to], q)
			if n < 0 {
				return
			}
			doc.add(&Step{Name: name, Up: step}, at+1, at+1+n, true, judge.Assigned)
			at += n + 2
			continue
		}
		end := at
		for end < to && strings.IndexByte(" \t\r\n>", text[end]) < 0 {
			end++
		}
		doc.add(&Step{Name: name, Up: step}, at, end, false, judge.Assigned)
		at = end
	}
}
