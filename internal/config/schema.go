package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// A Setting is a field of a section, or a section, in the tree of structs of a configuration.
type Setting struct {
	Name     string // in the file: section.field
	Variable string // in the environment
	Default  string
	Section  bool // it is a struct, which has neither variable nor default
	Secret   bool
	// Owner is the struct with the setting, and Member its name there.
	Owner  reflect.Type
	Member string

	inlined bool // the section has no name of its own: its fields belong to the section around it
	tag     reflect.StructTag
	value   reflect.Value
}

// inline is the tag of a struct whose fields belong to the section around it.
const inline = ",inline"

// walk lists what is in a struct, in its order: each section before its fields.
func (p Program) walk(of reflect.Value, prefix string) []Setting {
	var all []Setting
	for member, value := range of.Fields() {
		tag := member.Tag.Get("yaml")
		if tag == "" {
			continue
		}
		s := Setting{Name: prefix + tag, Owner: of.Type(), Member: member.Name, tag: member.Tag, value: value}
		if _, leaf := kindOf(member.Type); leaf {
			derived := p.Prefix + "_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
			s.Variable, s.Default = cmp.Or(s.tag.Get("env"), derived), s.tag.Get("default")
			_, s.Secret = s.secret()
			all = append(all, s)
			continue
		}
		s.Section, s.inlined = true, tag == inline
		below := s.Name + "."
		if s.inlined {
			s.Name, below = strings.TrimSuffix(prefix, "."), prefix
		}
		all = append(append(all, s), p.walk(value, below)...)
	}
	return all
}

// Settings lists the sections and fields of the struct that of points to.
func (p Program) Settings(of any) []Setting {
	return slices.DeleteFunc(p.walk(reflect.ValueOf(of).Elem(), ""), func(s Setting) bool { return s.inlined })
}

// fieldsOf lists the fields of the struct that of points to.
func (p Program) fieldsOf(of any) []Setting {
	return slices.DeleteFunc(p.Settings(of), func(s Setting) bool { return s.Section })
}

// secret returns the field's secret, if it holds one.
func (f Setting) secret() (*secret.Value, bool) {
	return reflect.TypeAssert[*secret.Value](f.value.Addr())
}

// setText sets the field from the environment or from its default. The items of a
// list are separated by commas.
func (f Setting) setText(text string) error {
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
func (f Setting) set(texts ...string) error {
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
