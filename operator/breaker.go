package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns"
)

const breakerUsage = `usage: criticizer breaker list [-json]
       criticizer breaker set STAGE -reason TEXT [-for D]
       criticizer breaker release STAGE

A braked stage begins nothing: its reviews wait, and burn no attempts. Workers
breaker a stage by themselves when what it talks to fails for everyone, and
release it when that answers again. STAGE is fetch, redact, llm or notify, or
one of the channels that notify tells besides the people: webhook or swarm.

  list     list the stages and how each stands
  set      breaker a stage, or take over from the workers: they no longer decide
           when it is released
  release  let a stage run again: for some seconds a trickle, then freely

Works without Postgres. docs/breaker.md says more.

flags:
  -reason TEXT   why; everybody who lists the breakers reads it
  -for D         release by itself after 30m, 24h (default: when told to)
  -json          print a JSON array

examples:
  criticizer breaker list
  criticizer breaker set llm -reason "INC-7: provider's maintenance" -for 2h
  criticizer breaker release llm

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// breaker implements criticizer breaker.
func breaker(ctx context.Context, args []string, c console) error {
	flags := c.flags("breaker", breakerUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	actions := map[string]command{"list": listBreakers, "set": openBreaker, "release": closeBreaker}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return notOne("breaker", flags.Arg(0), "list", "set", "release")
	}
	return action(ctx, flags.Args()[1:], c)
}

// A breakerQueue is a stage that can be braked.
type breakerQueue struct{ stage, queue string }

func breakerQueues() []breakerQueue {
	var all []breakerQueue
	for _, queue := range activities.OpenBreakers() {
		all = append(all, breakerQueue{activities.StageOf(queue), queue})
	}
	return all
}

const allBreakerQueues = "fetch, redact, llm, notify, webhook or swarm"

// oneStage reads the only argument that is no flag.
func oneStage(args []string) (breakerQueue, error) {
	if len(args) != 1 {
		return breakerQueue{}, badUsage("name one stage: %s", allBreakerQueues)
	}
	i := slices.IndexFunc(breakerQueues(), func(b breakerQueue) bool { return b.stage == args[0] })
	if i < 0 {
		return breakerQueue{}, badUsage("there is no stage %q to breaker: want %s", args[0], allBreakerQueues)
	}
	return breakerQueues()[i], nil
}

// A breakerLine is what is listed of one stage.
type breakerLine struct {
	Stage  string    `json:"stage"`
	State  string    `json:"state"`
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

func listBreakers(ctx context.Context, args []string, c console) error {
	flags := c.flags("list", breakerUsage)
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("list takes flags only: got %q", flags.Arg(0))
	}
	temporal, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	lines := []breakerLine{}
	for _, b := range breakerQueues() {
		state, err := temporal.BreakerOf(ctx, b.queue)
		if err != nil {
			return adviseBreaker(err)
		}
		limit := state.Limit
		lines = append(lines, breakerLine{b.stage, breakerWord(state), limit.Since, limit.By, limit.Why()})
	}
	if *asJSON {
		return c.printJSON(lines)
	}
	rows := [][]string{{"STAGE", "STATE", "SINCE", "BY", "REASON"}}
	for _, l := range lines {
		since := ""
		if !l.Since.IsZero() {
			since = age(time.Since(l.Since))
		}
		rows = append(rows, []string{l.Stage, l.State, since, printable(l.By), printable(l.Reason)})
	}
	table(c.stdout, "", rows)
	return nil
}

// breakerWord says how a stage stands.
func breakerWord(s temporalns.BreakerState) string {
	switch {
	case s.Limit.Standstill() && s.Probes > 0:
		return fmt.Sprintf("braked, probe %d", s.Probes)
	case s.Limit.Standstill():
		return "braked"
	case s.Easing():
		return "being released"
	case s.Running:
		return "being braked"
	case s.Limit.PerSecond != nil:
		return fmt.Sprintf("at most %g/s", *s.Limit.PerSecond)
	}
	return "free"
}

func openBreaker(ctx context.Context, args []string, c console) error {
	flags := c.flags("set", breakerUsage)
	reason := flags.String("reason", "", "")
	length := flags.Duration("for", 0, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	of, err := oneStage(rest)
	if err != nil {
		return err
	}
	if *length < 0 {
		return badUsage("-for %s is negative", *length)
	}
	order := activities.BreakerOrder{By: c.operator(), Held: true}
	if order.Reason, err = statement("reason", *reason); err != nil {
		return err
	}
	until := "until it is released"
	if *length > 0 {
		order.Until = time.Now().Add(*length).UTC()
		until = "until " + order.Until.Format("2006-01-02 15:04:05 UTC")
	}
	order.Reason += ", " + until
	temporal, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if err := temporal.OpenBreaker(ctx, of.queue, order); err != nil {
		return adviseBreaker(err)
	}
	if err := awaitBreaker(ctx, temporal, of, func(s temporalns.BreakerState) bool { return s.Limit.Standstill() && s.Limit.Why() == order.Reason }); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "stage %s is braked %s\n", of.stage, until)
	return nil
}

func closeBreaker(ctx context.Context, args []string, c console) error {
	rest, err := c.flags("release", breakerUsage).parseMixed(args)
	if err != nil {
		return err
	}
	of, err := oneStage(rest)
	if err != nil {
		return err
	}
	temporal, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	state, err := temporal.BreakerOf(ctx, of.queue)
	switch {
	case err != nil:
		return adviseBreaker(err)
	case !state.Running && !state.Limit.Standstill() && !state.Limit.OfBreaker():
		return advise(fmt.Errorf("stage %s is not braked: it is %s", of.stage, breakerWord(state)), "criticizer breaker list shows all stages")
	}
	if err := temporal.CloseBreaker(ctx, of.queue); err != nil {
		return adviseBreaker(err)
	}
	if err := awaitBreaker(ctx, temporal, of, func(s temporalns.BreakerState) bool { return !s.Limit.Standstill() }); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "stage %s is released\n", of.stage)
	return nil
}

// awaitBreaker waits until the workers have carried an order out.
func awaitBreaker(ctx context.Context, temporal runs, of breakerQueue, done func(temporalns.BreakerState) bool) error {
	const patience = 15 * time.Second
	for deadline := time.Now().Add(patience); ; {
		state, err := temporal.BreakerOf(ctx, of.queue)
		switch {
		case err != nil:
			return adviseBreaker(err)
		case done(state):
			return nil
		case time.Now().After(deadline):
			return advise(fmt.Errorf("stage %s is still %s after %s: the order waits in Temporal", of.stage, breakerWord(state), patience),
				"check that a worker of stage workflows runs; it carries the order out as soon as it does")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// temporal reaches Temporal without the database.
func (c console) temporal(ctx context.Context) (runs, error) {
	cfg, err := c.config()
	if err != nil {
		return runs{}, err
	}
	return c.runs(ctx, cfg)
}

func adviseBreaker(err error) error {
	if failure.ClassOf(err) == failure.ConfigInvalid {
		return advise(err, "upgrade the Temporal server, or stop the workers of the stage")
	}
	return advise(err, "check that the Temporal server is up and that temporal.namespace exists")
}
