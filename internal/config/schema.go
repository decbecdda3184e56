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
	v.Set(reflect.ValueOf(parsed))
	return nil
}

func (k kind) mismatch(what string) error {
	return fmt.Errorf("%s is not %s: write %s", what, k.noun, k.write)
}

// A Size is a number of bytes. In text it may have a unit: KB, MB and GB count in
// thousands, KiB, MiB and GiB in 1024s.
type Size int64

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
		return Size(n * u.bytes), nil
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
