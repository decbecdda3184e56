package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	os.Exit(run(os.Args, os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// A session is one invocation: one command, as one user.
type session struct {
	globals
	settings
	out    *printer
	depot  *depot
	faults *faults
	loc    *time.Location
	// unexpanded leaves keywords in contents alone.
	unexpanded bool
}

// run is the whole program; it returns the exit code.
func run(argv, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	started := time.Now()
	env := variables(environ)
	sims, err := loadSettings(env)
	if err != nil {
		return stumble(stderr, err)
	}
	out := &printer{stdout: bufio.NewWriterSize(stdout, 1<<16), stderr: stderr}
	s := &session{settings: sims, out: out}
	code, err := s.invoke(argv[1:], env, stdin)
	if err = errors.Join(err, out.stdout.Flush()); err != nil {
		code = stumble(stderr, err)
	}
	if err := logInvocation(sims, argv, environ, code, time.Since(started)); err != nil {
		return stumble(stderr, err)
	}
	return code
}

// stumble reports that the stand-in itself failed. No real client says so.
func stumble(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "p4sim: error: %v\n", err)
	return 1
}

func variables(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// invoke answers what needs no server, or runs the command.
func (s *session) invoke(argv []string, env map[string]string, stdin io.Reader) (int, error) {
	set, argv, bad := parseFlags(globalSpec, argv)
	if bad != nil {
		s.out.clientError(clientUsage.byClient(), *bad)
		return s.out.exit(), nil
	}
	s.globals = newGlobals(set, env)
	s.out.style, s.out.tagged, s.out.format = s.style(), s.tagged(), s.value("F")
	s.out.quiet = s.has("q") || s.has("--quiet")
	switch {
	case s.has("V"):
		s.out.write(versionText)
		return 0, nil
	case s.has("h") || s.has("?"):
		s.out.write(usageText)
		return 0, nil
	case len(argv) > 0 && argv[0] == "index":
		return 0, s.buildIndex()
	case !knownCharset(s.charset()):
		s.out.write("Character set must be one of:\n" + charsets + "\nCheck P4CHARSET and your '-C' option.\n")
		return 1, nil
	}
	return s.serve(argv, stdin)
}

// serve runs the command, once per batch of arguments.
func (s *session) serve(argv []string, stdin io.Reader) (code int, err error) {
	if s.loc, err = s.location(); err != nil {
		return 0, err
	}
	name, args := "", argv
	if len(argv) > 0 {
		name, args = argv[0], argv[1:]
	}
	stateDir, err := s.stateDir()
	if err != nil {
		return 0, err
	}
	if s.faults, err = loadFaults(s.settings, name, stateDir, s.out); err != nil {
		return 0, err
	}
	batches, err := s.batches(stdin)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.connect() {
		s.out.before = s.faults.before
		for _, batch := range batches {
			if err := s.dispatch(name, append(slices.Clip(args), batch...)); err != nil {
				return 0, err
			}
		}
	}
	return s.faults.finish(s.out.stderr, s.out.exit()), nil
}

// connect reports whether there is a server that takes commands.
func (s *session) connect() bool {
	if us := parseAddress(s.port()).unreachable(); us != nil {
		s.out.clientError(us...)
		return false
	}
	return s.faults.connect(s.port())
}

func (s *session) close() error {
	if s.depot == nil {
		return nil
	}
	return s.depot.close()
}

// dispatch checks the arguments and runs the command.
func (s *session) dispatch(name string, args []string) error {
	c, ok := commands[name]
	switch {
	case slices.Contains(writers, name):
		s.out.say(noPermission)
		return nil
	case !ok:
		s.out.say(badCommand)
		return nil
	case c.protected && !s.mayEnter():
		s.out.say(badPassword)
		return nil
	case s.charsetMismatch() != nil:
		s.out.say(s.charsetMismatch())
		return nil
	}
	f, rest, bad := parseFlags(c.flags, args)
	if bad == nil && (len(rest) < c.least || len(rest) > c.most) {
		bad = problem(wrongArgCount)
	}
	if bad != nil {
		s.out.fail(c.usage.with(), *bad)
		return nil
	}
	if s.depot == nil && !c.depotless {
		var err error
		if s.depot, err = s.openDepot(); err != nil {
			return err
		}
	}
	return c.run(s, f, rest)
}

// mayEnter reports whether the caller has the ticket that P4SIM_TICKET asks for.
func (s *session) mayEnter() bool {
	ticket := s.settings["P4SIM_TICKET"]
	if ticket == "" || s.setting("P", "", "P4PASSWD", "") == ticket {
		return true
	}
	text, err := os.ReadFile(cmp.Or(s.env["P4TICKETS"], s.env["HOME"]+"/.p4tickets"))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), s.port()+"="+s.user()+":"+ticket)
}

// charsetMismatch is what the server says to a client that is not in unicode
// mode while it is, or the reverse; nil if they agree.
func (s *session) charsetMismatch() *message {
	charset := s.charset()
	unicode := charset != "none" && charset != "auto"
	switch {
	case s.settings["P4SIM_UNICODE"] != "" && charset == "none":
		return needsUnicode
	case s.settings["P4SIM_UNICODE"] == "" && unicode:
		return noUnicode
	}
	return nil
}

// report prints a record where those are asked for, and a line elsewhere.
func (s *session) report(record []field, line *message, args ...string) {
	if s.out.tagged {
		s.out.record(record)
		return
	}
	s.out.say(line, args...)
}
