// Command criticizer is the operator's tool: it looks at what the service did
// and would do, and repairs it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/criticizer/criticizer/internal/cli"
)

const usage = `usage: criticizer [-config FILE] COMMAND [flags]
       criticizer help [COMMAND]
       criticizer -version

Looks at what the service did and would do, and repairs it. What takes more than
2 seconds says so on standard error, but for -json. Nothing is coloured.

commands:
  top         show what goes on: reviews, breakers, dead letters, mails
  status      tell the whole story of one changelist's reviews
  review      list the newest reviews; show what one found, also for other tools
  feedback    say that a finding was useful or wrong; list or forget what is wrong
  stats       count findings, and what readers said of them
  preview     tell how a changelist would be reviewed, without asking the model
  rules       tell which rules count for a path; list them
  eval        measure how well the configured model reviews
  deadletter  list, show, replay, resolve or annotate what could not be finished
  allowlist   check, show or put in force which depot paths may be read
  delivery    list, show, waive, readdress, resend or reconcile what is mailed
  breaker       list, set or release the outage breakers of the stages
  rewrite     run, list, show, cancel, requeue or count complaint rewrites
  artifact    show what is stored, for a reason; renew the key it is sealed with
  doctor      check everything that workers need, and say what to do about it
  redact      print what a model would see of a text or diff on standard input
  migrate     bring the database's schema to this build's version
  keyset      print a fresh value for CRITICIZER_ARTIFACT_KEYSET
  completion  print what completes command lines in bash, zsh or fish
  man         write the pages for man
  help        print this, or what -h prints of a command

flags:
  -config FILE   configuration (default $CRITICIZER_CONFIG, else
                 /etc/criticizer/criticizer.yaml if it exists)
  -version       print the version of this build, and end
  -h             print this or, behind a command, the help of that command

examples:
  criticizer doctor
  criticizer status 4711
  criticizer help deadletter

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// A command runs with its arguments, the name of the command left out.
type command func(ctx context.Context, args []string, c console) error

// commands are those that the usage lists.
func commands() map[string]command {
	return map[string]command{
		"top":        top,
		"status":     status,
		"preview":    previewChange,
		"rules":      rulePacks,
		"eval":       evaluate,
		"review":     reviews,
		"feedback":   feedback,
		"stats":      stats,
		"deadletter": deadletter,
		"delivery":   delivery,
		"allowlist":  allowlist,
		"artifact":   artifacts,
		"breaker":      breaker,
		"rewrite":    rewrites,
		"doctor":     doctor,
		"redact":     redact,
		"migrate":    migrate,
		"keyset":     keyset,
		"completion": completion,
		"man":        manPages,
		"help":       help,
	}
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := console{getenv: os.Getenv, stdin: stdin, stdout: stdout, stderr: stderr, onWork: cli.Progress}
	err := c.run(ctx, args)
	if err != nil && ctx.Err() != nil {
		err = interrupted(err)
	}
	return statusOf(stderr, err)
}

// interrupted keeps what is blamed on the outside from being blamed on it where
// somebody pressed Ctrl-C.
func interrupted(err error) error {
	return advise(fmt.Errorf("interrupted: %w", err), "what it had begun is not undone")
}

func (c console) run(ctx context.Context, args []string) error {
	flags := c.flags("criticizer", usage)
	flags.StringVar(&c.configPath, "config", "", "")
	version := flags.Bool("version", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if *version {
		fmt.Fprintln(c.stdout, cli.Version("criticizer"))
		return nil
	}
	if flags.NArg() == 0 {
		return badUsage("no command was given")
	}
	run, ok := commands()[flags.Arg(0)]
	if !ok {
		return unknownCommand(flags.Arg(0))
	}
	if name := flags.Arg(0); c.onWork != nil && !slices.Contains(quietCommands, name) && !slices.Contains(args, "-json") {
		defer c.onWork(c.stderr, "criticizer "+name)()
	}
	return adviseUsage(run(ctx, flags.Args()[1:], c), flags.Arg(0))
}

// quietCommands show by themselves that they are at work, or wait for input.
var quietCommands = []string{"top", "redact", "eval"}
