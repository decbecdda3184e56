package main

import (
	"errors"
	"flag"
	"io"
	"math"
	"strconv"
	"strings"
)

// commands are the commands that p4sim imitates.
var commands = map[string]struct {
	run   func(*session, flags, []string) error
	flags string // see parseFlags
	args  int    // the least number of arguments
}{
	"changes":  {(*session).changes, "m: s:", 0},
	"describe": {(*session).describe, "s S", 1},
	"filelog":  {(*session).filelog, "m:", 1},
	"files":    {(*session).files, "e m:", 1},
	"info":     {(*session).info, "s", 0},
	"jobs":     {(*session).jobs, "l e:", 0},
	"login":    {(*session).login, "s", 0},
	"protects": {(*session).protects, "", 0},
	"print":    {(*session).print, "q", 1},
	"reviews":  {(*session).reviews, "c:", 0},
	"users":    {(*session).users, "", 1},
}

// dispatch checks the arguments of a command and runs it.
func (s *session) dispatch(name string, args []string) error {
	c, ok := commands[name]
	if !ok {
		s.out.message(badCommand)
		return nil
	}
	f, args, err := parseFlags(c.flags, args)
	switch {
	case err != nil:
		s.out.message(invalidOption, err)
		return nil
	case len(args) < c.args:
		s.out.message(wrongArgCount)
		return nil
	}
	if s.depot, err = s.openDepot(); err != nil {
		return err
	}
	return errors.Join(c.run(s, f, args), s.depot.close())
}

// flags are the values of the options that were given, by name.
type flags map[string]string

// parseFlags reads options up to the first argument. The spec lists them: "a" has
// no value, "m:" has one.
func parseFlags(spec string, args []string) (flags, []string, error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for option := range strings.FieldsSeq(spec) {
		if name, hasValue := strings.CutSuffix(option, ":"); hasValue {
			set.String(name, "", "")
		} else {
			set.Bool(name, false, "")
		}
	}
	err := set.Parse(args)
	given := flags{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	return given, set.Args(), err
}

// limit is the value of -m.
func (f flags) limit() int {
	if n, err := strconv.Atoi(f["m"]); err == nil {
		return n
	}
	return math.MaxInt
}
