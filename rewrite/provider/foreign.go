package provider

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// An object is a JSON object of a provider, which is read by parts. A part that is missing or
// has another type than expected reads as its zero value and does not hide the other parts.
type object map[string]json.RawMessage

// objectOf returns nil if raw is not a JSON object.
func objectOf(raw []byte) (o object) {
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// object returns a part that is an object, or a text that holds one.
func (o object) object(name string) object {
	if part := objectOf(o[name]); part != nil {
		return part
	}
	return objectOf([]byte(o.text(name)))
}

// hasError reports whether the error is an object or a text.
func (o object) hasError() bool { return len(o.object("error")) > 0 || o.text("error") != "" }

func (o object) list(name string) (items []json.RawMessage) {
	_ = json.Unmarshal(o[name], &items)
	return items
}

// text returns a text, or the digits of a number.
func (o object) text(name string) (s string) {
	if json.Unmarshal(o[name], &s) == nil {
		return s
	}
	var n json.Number
	_ = json.Unmarshal(o[name], &n)
	return n.String()
}

// number returns a number, or that of a text, without its fraction.
func (o object) number(name string) int {
	n, _ := strconv.ParseFloat(o.text(name), 64)
	return int(n)
}

func (o object) is(name string) bool { return strings.Trim(string(o[name]), `"`) == "true" }

// time returns the time in seconds since 1970 or in RFC 3339; the zero time if there is none.
func (o object) time(name string) time.Time {
	if n := o.number(name); n > 0 {
		return time.Unix(int64(n), 0).UTC()
	}
	t, _ := time.Parse(time.RFC3339, o.text(name))
	return t.UTC()
}

// words returns a text, or the texts of a list of parts whose type is kind.
func (o object) words(name, kind string) string {
	words := []string{o.text(name)}
	for _, raw := range o.list(name) {
		if part := objectOf(raw); part.text("type") == kind {
			words = append(words, part.text("text"))
		}
	}
	return strings.Join(words, "")
}
