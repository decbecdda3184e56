package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	os.Exit(run(os.Args, os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// A session is one invocation: one command, as one user.
type session struct {
	settings
	out    *printer
	faults *faults
	depot  *depot // nil until a command needs it
}

// run is the whole program; it returns the exit status. An error of p4sim itself is in
// words that no real client prints.
func run(argv, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	set, err := loadSettings(environ)
	s := &session{settings: set, out: &printer{stdout: bufio.NewWriterSize(stdout, 1<<16), stderr: stderr}}
	if err == nil {
		err = errors.Join(s.invoke(argv[1:], stdin), s.out.stdout.Flush(), logInvocation(set["P4SIM_LOG"], argv))
	}
	if err != nil {
		fmt.Fprintf(stderr, "p4sim: error: %v\n", err)
		return 1
	}
	return s.out.status
}

// settings are the variables of the environment, and of p4sim.conf beside the
// executable; the environment overrides the file.
type settings map[string]string

func loadSettings(environ []string) (settings, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find p4sim.conf: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(executable), "p4sim.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	s := settings{}
	for _, line := range slices.Concat(strings.Split(string(text), "\n"), environ) {
		if name, value, ok := strings.Cut(line, "="); ok {
			s[name] = value
		}
	}
	return s, nil
}

// stateDir makes the directory of the snapshots of git and of the state of faults.
func (s settings) stateDir() (string, error) {
	cache, err := os.UserCacheDir()
	if s["P4SIM_STATE"] == "" && err != nil {
		return "", fmt.Errorf("find the state directory: %w; set P4SIM_STATE", err)
	}
	dir := cmp.Or(s["P4SIM_STATE"], filepath.Join(cache, "p4sim"))
	return dir, os.MkdirAll(dir, 0o700)
}

// logInvocation appends the arguments to the file, if there is one.
func logInvocation(name string, argv []string) error {
	if name == "" {
		return nil
	}
	line, _ := json.Marshal(argv)
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// commands are the commands that p4sim imitates.
var commands = map[string]struct {
	run   func(*session, flags, []string) error
	flags string // see parseFlags
}{
	"changes":  {(*session).changes, "m: s:"},
	"describe": {(*session).describe, "s S"},
	"filelog":  {(*session).filelog, "m:"},
	"files":    {(*session).files, "e m:"},
	"info":     {(*session).info, "s"},
	"jobs":     {(*session).jobs, "l e:"},
	"login":    {(*session).login, "s"},
	"protects": {(*session).protects, ""},
	"print":    {(*session).print, "q"},
	"reviews":  {(*session).reviews, "c:"},
	"users":    {(*session).users, ""},
}

// invoke parses the command line and runs the command.
func (s *session) invoke(args []string, stdin io.Reader) error {
	global, args, err := parseFlags("G ztag zprog: x:", args)
	if err != nil {
		return err
	}
	s.out.marshalled = global["G"] != ""
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if global["x"] != "" {
		lines, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("read the arguments: %w", err)
		}
		args = append(args, strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n")...)
	}
	if s.faults, err = loadFaults(s.settings, name, s.out); err != nil || !s.faults.connect(s.settings["P4PORT"]) {
		return err
	}
	c, ok := commands[name]
	f, args, err := parseFlags(c.flags, args)
	if !ok || err != nil {
		s.out.message(wrongUsage)
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
