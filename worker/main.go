// Command worker runs reviews: it serves the task queues of the stages it is
// told to, each with the credentials and the database role of that stage alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/config"
)

const usage = `usage: worker [-config FILE] [-stages LIST]
       worker -healthy [-config FILE]
       worker -version

Serves the reviews of this installation until it is told to stop (SIGTERM,
Ctrl-C): it then takes no new work and finishes what it has begun. A secret whose
file is replaced is read again within 10 seconds, all of them at once on SIGHUP.
The log goes to standard error: coloured on a terminal unless NO_COLOR is set.

flags:
  -config FILE   configuration (default $CRITICIZER_CONFIG, else
                 /etc/criticizer/criticizer.yaml if it exists)
  -stages LIST   what to serve, by commas, or all (default):
                 workflows  the order of each review, and its row
                 fetch      reads changelists with p4
                 redact     masks secrets
                 llm        asks the model
                 notify     sends mail
                 retention  deletes what is past its time
                 rewrite    works the queue of complaint rewrites; not among
                            all, for it is no part of a review
                 A worker needs, and should be given, only the secrets of its
                 stages.
  -healthy       serve nothing: ask the worker that listens at worker.listen
                 whether it lives, and exit with 0 if it does
  -version       print the version of this build, and end
  -h             print this

examples:
  worker
  worker -config /etc/criticizer/criticizer.yaml -stages fetch,redact
  worker -healthy

Exit status: 0 stopped, 1 failed, 2 wrong usage.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	var wrong usageError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "worker: error: %v\nhint: worker -h shows the usage\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "worker: error: %v\n", err)
		os.Exit(1)
	}
}

// usageError is an error that a look at the usage would have prevented.
type usageError struct{ error }

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	configPath := flags.String("config", "", "")
	list := flags.String("stages", "", "")
	check := flags.Bool("healthy", false, "")
	version := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return printLine(stdout, strings.TrimSuffix(usage, "\n"))
	case err != nil:
		return usageError{cli.ExplainFlags(flags, err)}
	case *version:
		return printLine(stdout, cli.Version("worker"))
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("worker takes flags only: got %q", flags.Arg(0))}
	}
	chosen, err := parseStages(*list)
	if err != nil {
		return usageError{err}
	}
	cfg, err := config.Load(*configPath, getenv)
	if err != nil {
		return err
	}
	if *check {
		return healthy(ctx, cfg.Worker.Listen)
	}
	if err := cfg.Check(rolesOf(chosen)...); err != nil {
		return err
	}
	p, err := newPlant(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	defer p.close()
	return p.serve(ctx, chosen)
}

func printLine(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, text)
	return err
}

// rolesOf is what the configuration knows the stages as.
func rolesOf(chosen []stage) []config.Role {
	var roles []config.Role
	for _, s := range chosen {
		roles = append(roles, s.name)
	}
	return roles
}

func parseStages(list string) ([]stage, error) {
	if list == "" || list == "all" {
		return stages(), nil
	}
	var chosen []stage
	for name := range strings.SplitSeq(list, ",") {
		s, ok := stageNamed(strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("unknown stage %q in -stages: worker -h lists them", name)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}
