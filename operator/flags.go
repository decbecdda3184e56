package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/criticizer/criticizer/internal/cli"
)

// A flagSet is the flags of one command. It prints the usage for -h only, and
// leaves errors to be reported in one place.
type flagSet struct {
	*flag.FlagSet
	showUsage func()
}

func (c console) flags(name, usage string) flagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	return flagSet{flags, func() { fmt.Fprint(c.stdout, usage) }}
}

// parse reads the flags before the first argument that is none.
func (f flagSet) parse(args []string) error {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.showUsage()
	case err != nil:
		return usageError{cli.ExplainFlags(f.FlagSet, err)}
	}
	return err
}

// parseMixed reads flags wherever they stand, and returns the other arguments.
func (f flagSet) parseMixed(args []string) (rest []string, err error) {
	for {
		if err := f.parse(args); err != nil || f.NArg() == 0 {
			return rest, err
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}
