package cli

import (
	"flag"
	"fmt"
	"regexp"
	"time"
)

// badValue is how package flag says that a value is none of its type.
const badValue = `^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): (?:parse error|value out of range)$`

// ExplainFlags adds to an error of [flag.FlagSet.Parse] what the flag wants.
func ExplainFlags(flags *flag.FlagSet, err error) error {
	found := regexp.MustCompile(badValue).FindStringSubmatch(fmt.Sprint(err))
	if found == nil {
		return err
	}
	f := flags.Lookup(found[2])
	if f == nil {
		return err
	}
	value, ok := f.Value.(flag.Getter)
	if !ok {
		return err
	}
	want := "a whole number"
	switch value.Get().(type) {
	case time.Duration:
		want = "a time with its unit, such as 30s, 5m or 24h"
	case bool:
		want = "true or false"
	case float64:
		want = "a number"
	}
	return fmt.Errorf("-%s %s: want %s", found[2], found[1], want)
}
