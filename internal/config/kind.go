package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/criticizer/criticizer/internal/secret"
)

// A kind is what is known about the fields of one Go type.
type kind struct {
	noun  string                    // completes "is not"
	write string                    // completes "write"
	nodes []ast.NodeType            // scalars that may be written in the file
	parse func(string) (any, error) // nil for lists and secrets
}

// kinds holds every type a field may have; any other type is a section.
var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string](): {
		"text", "it in quotes", []ast.NodeType{ast.StringType},
		func(s string) (any, error) { return s, nil },
	},
	reflect.TypeFor[[]string](): {
		"a list", "it as [one, two], or one below the other, each after a dash", nil, nil,
	},
	reflect.TypeFor[[]int](): {
		"a list of whole numbers", "it as [1, 2], or one below the other, each after a dash", nil, nil,
	},
	reflect.TypeFor[bool](): {
		"true or false", "true or false, without quotes", []ast.NodeType{ast.BoolType}, parseBool,
	},
	reflect.TypeFor[int](): {
		"a whole number", "digits only, such as 10", []ast.NodeType{ast.IntegerType},
		func(s string) (any, error) { return strconv.Atoi(s) },
	},
	reflect.TypeFor[float64](): {
		"a number", "one such as 2.5", []ast.NodeType{ast.IntegerType, ast.FloatType}, parseNumber,
	},
	reflect.TypeFor[time.Duration](): {
		"a duration", "a number with its unit, such as 60s, 5m or 24h", []ast.NodeType{ast.StringType},
		func(s string) (any, error) { return time.ParseDuration(s) },
	},
	reflect.TypeFor[Size](): {
		"a size", "a number of bytes or one such as 512KB or 20MB", []ast.NodeType{ast.StringType, ast.IntegerType},
		func(s string) (any, error) { return parseSize(s) },
	},
	reflect.TypeFor[slog.Level](): {
		"a level", "debug, info, warn or error", []ast.NodeType{ast.StringType}, parseLevel,
	},
	reflect.TypeFor[secret.Value](): {},
}

// set parses texts into v, which is of this kind.
func (k kind) set(v reflect.Value, texts []string) error {
	if v.Kind() == reflect.Slice {
		return k.setList(v, texts)
	}
	parsed, err := k.parse(texts[0])
	if err != nil {
		return k.refuse(strconv.Quote(texts[0]))
	}
	v.Set(reflect.ValueOf(parsed))
	return nil
}

func (k kind) setList(v reflect.Value, texts []string) error {
	list := reflect.MakeSlice(v.Type(), len(texts), len(texts))
	for i := range texts {
		if err := kinds[v.Type().Elem()].set(list.Index(i), texts[i:i+1]); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

func (k kind) refuse(what string) error {
	return fmt.Errorf("%s is not %s: write %s", what, k.noun, k.write)
}

// A Size is a number of bytes. In text it may have a unit: KB, MB and GB count
// in thousands, KiB, MiB and GiB in 1024s.
type Size int64

// The units of a size, longest first where one ends in another.
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
	return 0, errors.New("no size")
}

func parseBool(s string) (any, error) {
	if s != "true" && s != "false" {
		return nil, errors.New("neither true nor false")
	}
	return s == "true", nil
}

func parseNumber(s string) (any, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return nil, errors.New("no finite number")
	}
	return n, nil
}

func parseLevel(s string) (any, error) {
	level, ok := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[s]
	if !ok {
		return nil, errors.New("no level")
	}
	return level, nil
}
