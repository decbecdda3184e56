package config

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A field is one leaf of the struct tree.
type field struct {
	name     string // as in the file: section.field
	variable string // of the environment
	standard string // the default, as it would be written in the file; empty if none
	value    reflect.Value
}

// fieldsOf lists the leaves of c in the order of the struct tree.
func fieldsOf(c *Config) []field {
	return leaves(reflect.ValueOf(c).Elem(), "")
}

func leaves(section reflect.Value, prefix string) []field {
	var fields []field
	for member, value := range section.Fields() {
		name := prefix + member.Tag.Get("yaml")
		if _, leaf := kinds[value.Type()]; !leaf {
			fields = append(fields, leaves(value, name+".")...)
			continue
		}
		derived := "CRITICIZER_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		fields = append(fields, field{
			name: name, variable: cmp.Or(member.Tag.Get("env"), derived), standard: member.Tag.Get("default"), value: value,
		})
	}
	return fields
}

func (f field) kind() kind { return kinds[f.value.Type()] }

// set gives the field a value, or a list of values if it holds a list.
func (f field) set(texts ...string) error { return f.kind().set(f.value, texts) }

// split cuts a variable's text at commas if the field holds a list.
func (f field) split(text string) []string {
	if f.value.Kind() != reflect.Slice {
		return []string{text}
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// secret returns the place of the field's secret, if it is one.
func (f field) secret() (*secret.Value, bool) {
	return reflect.TypeAssert[*secret.Value](f.value.Addr())
}
