// Command criticizer is the operator's tool: it looks at what the service did
// and would do, and repairs it.
package main

import (
	"fmt"
	"io"
	"os"
)

const usage = `usage: criticizer <command> [flags]

commands:
  redact    print what a model would see of a text or diff on standard input

Run criticizer <command> -h for the flags of a command.
`

// A command runs with its arguments, the name of the command left out.
type command func(args []string, stdin io.Reader, stdout, stderr io.Writer) error

var commands = map[string]command{
	"redact": redact,
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(stderr, usage)
		return 2
	}
	cmd, ok := commands[args[0]]
	if !ok {
		return fail(stderr, fmt.Errorf("unknown command %q", args[0]), "run criticizer -h for the commands")
	}
	if err := cmd(args[1:], stdin, stdout, stderr); err != nil {
		return fail(stderr, err, hintOf(err))
	}
	return 0
}
