package config

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/criticizer/criticizer/internal/secret"
)

// A field is one leaf of the tree of structs in a [Config].
type field struct {
	name     string // in the file: section.field
	variable string // in the environment
	tag      reflect.StructTag
	value    reflect.Value
}

// fieldsOf lists the fields of c in the order of the structs.
func fieldsOf(c *Config) []field {
	return leaves(reflect.ValueOf(c).Elem(), "")
}

func leaves(section reflect.Value, prefix string) []field {
	var fields []field
	for member, value := range section.Fields() {
		if !member.IsExported() {
			continue
		}
		name := prefix + member.Tag.Get("yaml")
		if _, leaf := kinds[value.Type()]; !leaf {
			fields = append(fields, leaves(value, name+".")...)
			continue
		}
		derived := "CRITICIZER_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		fields = append(fields, field{name: name, variable: cmp.Or(member.Tag.Get("env"), derived), tag: member.Tag, value: value})
	}
	return fields
}

// secret returns the field's secret, if it holds one.
func (f field) secret() (*secret.Value, bool) {
	return reflect.TypeAssert[*secret.Value](f.value.Addr())
}

// setText sets the field from the environment or from its default. The items of a
// list are separated by commas.
func (f field) setText(text string) error {
	if f.value.Kind() != reflect.Slice {
		return f.set(text)
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return f.set(items...)
}

// set gives the field a value, or a list of values if it holds a list.
func (f field) set(texts ...string) error {
	if f.value.Kind() != reflect.Slice {
		return kinds[f.value.Type()].set(f.value, texts[0])
	}
	list := reflect.MakeSlice(f.value.Type(), len(texts), len(texts))
	for i, text := range texts {
		if err := kinds[f.value.Type().Elem()].set(list.Index(i), text); err != nil {
			return err
		}
	}
	f.value.Set(list)
	return nil
}
