package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// A field is one leaf of the tree of structs in a configuration.
type field struct {
	name     string // in the file: section.field
	variable string // in the environment
	tag      reflect.StructTag
	value    reflect.Value
	owner    reflect.Type // the struct of the field
	member   string       // its name in Go
}

// fieldsOf lists the fields of the struct that c points to, in the order of the structs.
func (p Program) fieldsOf(c any) []field { return p.leaves(reflect.ValueOf(c).Elem(), "") }

func (p Program) leaves(of reflect.Value, prefix string) []field {
	var fields []field
	for member, value := range of.Fields() {
		tag := member.Tag.Get("yaml")
		_, leaf := kindOf(member.Type)
		switch name := prefix + tag; {
		case tag == "":
		case tag == inline:
			fields = append(fields, p.leaves(value, prefix)...)
		case !leaf:
			fields = append(fields, p.leaves(value, name+".")...)
		default:
			derived := p.Prefix + "_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
			fields = append(fields, field{name, cmp.Or(member.Tag.Get("env"), derived), member.Tag, value, of.Type(), member.Name})
		}
	}
	return fields
}

// A Setting is a field or a section, as the reference page needs it.
type Setting struct {
	Name string // in the file
	// Section is set if it is a section, which has nothing of the following but its place.
	Section  bool
	Variable string
	Default  string
	Secret   bool
	// Owner is the struct with the field, and Member the name of the field in Go.
	Owner  reflect.Type
	Member string
}

// Settings lists the sections and fields of the struct that of points to.
func (p Program) Settings(of any) []Setting {
	var all []Setting
	for _, f := range p.fieldsOf(of) {
		_, isSecret := f.secret()
		all = append(all, Setting{f.name, false, f.variable, f.tag.Get("default"), isSecret, f.owner, f.member})
	}
	for _, s := range sectionsOf(reflect.ValueOf(of).Elem(), "") {
		if !s.inlined {
			all = append(all, Setting{Name: s.name, Section: true, Owner: s.owner, Member: s.member})
		}
	}
	return all
}

// inline is the tag of a struct whose fields belong to the section around it.
const inline = ",inline"

// A section is a struct in the tree, with its name in the file.
type section struct {
	name    string
	value   any // a pointer to the struct
	inlined bool
	owner   reflect.Type // the struct with the field of the section
	member  string       // its name in Go
}

// sectionsOf lists the sections in of, each before those in it.
func sectionsOf(of reflect.Value, prefix string) []section {
	var found []section
	for member, value := range of.Fields() {
		tag := member.Tag.Get("yaml")
		if _, leaf := kindOf(member.Type); leaf || tag == "" {
			continue
		}
		name, below := prefix+tag, prefix+tag+"."
		if tag == inline {
			name, below = strings.TrimSuffix(prefix, "."), prefix
		}
		found = append(append(found, section{name, value.Addr().Interface(), tag == inline, of.Type(), member.Name}), sectionsOf(value, below)...)
	}
	return found
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
		k, _ := kindOf(f.value.Type())
		return k.set(f.value, texts[0])
	}
	k, _ := kindOf(f.value.Type().Elem())
	list := reflect.MakeSlice(f.value.Type(), len(texts), len(texts))
	for i, text := range texts {
		if err := k.set(list.Index(i), text); err != nil {
			return err
		}
	}
	f.value.Set(list)
	return nil
}

// A kind describes the fields of one Go type.
type kind struct {
	noun  string                    // completes "is not"
	write string                    // completes "write"
	parse func(string) (any, error) // nil for lists and secrets
}

// kinds holds the types of fields. A struct of any other type is a section.
var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string]():       {"text", "it in quotes", func(s string) (any, error) { return s, nil }},
	reflect.TypeFor[[]string]():     {noun: "a list", write: "it as [one, two], or one item per line after a dash"},
	reflect.TypeFor[[]int]():        {noun: "a list of whole numbers", write: "it as [1, 2], or one item per line after a dash"},
	reflect.TypeFor[bool]():         {"true or false", "true or false", parseBool},
	reflect.TypeFor[int]():          {"a whole number", "digits only, such as 10", func(s string) (any, error) { return strconv.Atoi(s) }},
	reflect.TypeFor[float64]():      {"a number", "one such as 2.5", parseNumber},
	reflect.TypeFor[*int]():         {"a whole number", "digits only, such as 10", optional(strconv.Atoi)},
	reflect.TypeFor[*float64]():     {"a number", "one such as 0.2", optional(func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })},
	reflect.TypeFor[Size]():         {"a size", "a number of bytes or one such as 512KB or 20MB", func(s string) (any, error) { return parseSize(s) }},
	reflect.TypeFor[slog.Level]():   {"a level", "debug, info, warn or error", parseLevel},
	reflect.TypeFor[secret.Value](): {},
	reflect.TypeFor[time.Duration](): {
		"a duration", "a number with its unit, such as 60s, 5m or 24h", func(s string) (any, error) { return time.ParseDuration(s) },
	},
}

// kindOf returns the kind of fields of type t. A type of our own that is a text or a number,
// such as a severity, is read as one.
func kindOf(t reflect.Type) (kind, bool) {
	if k, ok := kinds[t]; ok {
		return k, true
	}
	switch {
	case t.Kind() == reflect.String:
		return kinds[reflect.TypeFor[string]()], true
	case t.Kind() == reflect.Int64 || t.Kind() == reflect.Int:
		return kinds[reflect.TypeFor[int]()], true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return kinds[reflect.TypeFor[[]string]()], true
	}
	return kind{}, false
}

// optional parses a field that may be unset: zero differs from no value.
func optional[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(s string) (any, error) {
		v, err := parse(s)
		return &v, err
	}
}

// set parses text into v, which is of this kind.
func (k kind) set(v reflect.Value, text string) error {
	parsed, err := k.parse(text)
	if err != nil {
		return k.mismatch(strconv.Quote(text))
	}
	v.Set(reflect.ValueOf(parsed).Convert(v.Type()))
	return nil
}

func (k kind) mismatch(what string) error {
	return fmt.Errorf("%s is not %s: write %s", what, k.noun, k.write)
}

// A Size is a number of bytes; a field of type int64 is one. In text it may have a unit: KB, MB and GB count in
// thousands, KiB, MiB and GiB in 1024s.
type Size = int64

// units lists the units of a size; a unit comes before its own suffixes.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

func parseSize(s string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, errors.New("not a size")
}

// parseBool accepts less than strconv.ParseBool: only what YAML accepts.
func parseBool(s string) (any, error) {
	if s != "true" && s != "false" {
		return nil, errors.New("neither true nor false")
	}
	return s == "true", nil
}

func parseNumber(s string) (any, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return nil, errors.New("not a finite number")
	}
	return n, nil
}

func parseLevel(s string) (any, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s))
	return level, err
}
