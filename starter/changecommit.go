package main

import (
	"bufio"
	"cmp"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/review"
)

func (a *app) changeCommit() *cobra.Command {
	var version int
	var key string
	var submit submitFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "change-commit CHANGELIST",
		Short: "Start the review of a submitted changelist",
		Long: `Start the review of a submitted changelist and return at once. If the review
exists, print it and change nothing.

If Temporal does not answer in time, the request is written to the spool
(starter.spool_dir). The next call that reaches Temporal, or drain,
starts the spooled reviews.`,
		Example: `  criticizer-starter change-commit 4711
  criticizer-starter change-commit --wait --review-version 2 4711`,
		Args: a.changelistArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := trigger.Load(a.configPath, a.getenv)
			if err != nil {
				return err
			}
			req, err := a.request(cmd, args, review.Request{Version: review.Version(version), ServerID: cmp.Or(submit.serverID, cfg.ServerID), Key: key})
			if err != nil {
				return err
			}
			if wait {
				return a.startAndWait(cmd, cfg, req, submit)
			}
			return a.submit(cmd, cfg, req, submit)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&version, "review-version", 1, "`version` of the review; the rerun of a finished review needs a higher one")
	flags.StringVar(&key, "key", "", "idempotency key and workflow ID (default review-SERVER-CHANGELIST-vVERSION)")
	flags.BoolVar(&wait, "wait", false, "wait for the end of the review and print its outcome; do not spool")
	submit.register(cmd)
	return cmd
}

// submitFlags are the flags of both commands that submit a review.
type submitFlags struct {
	serverID string
	timeout  time.Duration
	json     bool
}

func (f *submitFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.serverID, "server-id", "", "Perforce server `ID` in the workflow ID (default: server_id of the configuration)")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "how long to try Temporal and the spool")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
}

// changelistArg is [cobra.ExactArgs] of one. A trigger may get the changelist elsewhere.
func (a *app) changelistArg(cmd *cobra.Command, args []string) error {
	if a.trigger && len(args) == 0 {
		return nil
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// maxDictionary bounds the dictionary of a trigger, in bytes.
const maxDictionary = 1 << 20

// inDictionary matches the changelist in a dictionary, and not oldchangelist.
var inDictionary = regexp.MustCompile(`^\W*change(?:list)?\W+(\d{1,10})\b`)

// request completes and checks req for the changelist of the arguments. A server with
// triggers.io=1 writes a dictionary to the standard input of a trigger, which has to read it.
// Such a server may leave out the argument, or pass %changelist% as it is.
func (a *app) request(cmd *cobra.Command, args []string, req review.Request) (review.Request, error) {
	number := strings.Join(args, "")
	if a.trigger {
		input := bufio.NewScanner(io.LimitReader(cmd.InOrStdin(), maxDictionary))
		for (number == "" || strings.Contains(number, "%")) && input.Scan() {
			if found := inDictionary.FindStringSubmatch(input.Text()); found != nil {
				number = found[1]
			}
		}
		go func() {
			for input.Scan() { // the server waits until the rest is read
			}
		}()
	}
	cl, err := review.ParseChangelist(number)
	if err != nil {
		return req, cli.UsageError{Err: err}
	}
	req.Changelist = cl
	if req.Shelved {
		req.Key = review.ShelfKey(req.ServerID, cl)
	} else if req.Key == "" {
		req.Key = review.DefaultKey(req.ServerID, cl, req.Version)
	}
	if err := req.Validate(); err != nil {
		return req, cli.UsageError{Err: err}
	}
	return req, nil
}
