package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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

// run is the whole program; it returns the exit status.
func run(argv, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	set, err := loadSettings(environ)
	if err != nil {
		return fail(stderr, err)
	}
	s := &session{settings: set, out: &printer{stdout: bufio.NewWriterSize(stdout, 1<<16), stderr: stderr}}
	if err := errors.Join(s.invoke(argv[1:], stdin), s.out.stdout.Flush(), logInvocation(set["P4SIM_LOG"], argv)); err != nil {
		return fail(stderr, err)
	}
	return s.out.status
}

// fail reports an error of p4sim itself, in words that no real client prints.
func fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "p4sim: error: %v\n", err)
	return 1
}

// invoke parses the command line and runs the command.
func (s *session) invoke(args []string, stdin io.Reader) error {
	global, args, err := parseFlags("G ztag zprog: x:", args)
	if err != nil {
		s.out.clientError("p4 -h for usage.", invalidOption.format(err))
		return nil
	}
	s.out.marshalled = global["G"] != ""
	if len(args) == 0 {
		args = []string{""}
	}
	name, args := args[0], args[1:]
	if global["x"] != "" {
		lines, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("read the arguments: %w", err)
		}
		args = append(args, strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n")...)
	}
	if s.faults, err = loadFaults(s.settings, name, s.out); err != nil {
		return err
	}
	if !s.faults.connect(s.settings["P4PORT"]) {
		return nil
	}
	return s.dispatch(name, args)
}

// logInvocation appends the arguments to the file, if there is one.
func logInvocation(name string, argv []string) error {
	if name == "" {
		return nil
	}
	line, err := json.Marshal(argv)
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log invocation: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
