package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns"
)

func (c *console) breakerCommand() *cobra.Command {
	return group("breaker", "List, open or close the circuit breakers of the stages",
		`While the circuit breaker of a stage is open, the stage starts nothing: its
reviews wait and use no attempts. Workers open it when the stage's endpoint fails
for every review, and close it when the endpoint responds again. STAGE is fetch,
redact, llm, notify, webhook or swarm; the last two are channels of notify.

These commands need Temporal, but not Postgres. docs/breaker.md has the details.`,
		c.breakerListCommand(), c.breakerOpenCommand(), c.breakerCloseCommand())
}

// breakerStages lists the stages that have a circuit breaker.
func breakerStages() []string {
	var stages []string
	for _, queue := range activities.BreakerQueues() {
		stages = append(stages, activities.StageOf(queue))
	}
	return stages
}

// onStage connects to Temporal and calls act with the stage that the operand names.
func (c *console) onStage(cmd *cobra.Command, act func(ctx context.Context, temporal runs, stage, queue string) error) *cobra.Command {
	stages := breakerStages()
	cmd.ValidArgsFunction = first(fixed(stages...))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i := slices.Index(stages, args[0])
		if i < 0 {
			return badUsage("stage %q has no circuit breaker: want %s", args[0], alternatives(stages...))
		}
		return c.onTemporal(func(ctx context.Context, temporal runs, _ []string) error {
			return act(ctx, temporal, args[0], activities.BreakerQueues()[i])
		})(cmd, args)
	}
	return cmd
}

// A breakerView is the circuit breaker of one stage.
type breakerView struct {
	Stage  string    `json:"stage"`
	State  string    `json:"state"`
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

func (c *console) breakerListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the stages and the state of their circuit breakers",
		RunE: c.onTemporal(func(ctx context.Context, temporal runs, _ []string) error {
			var views []breakerView
			for _, queue := range activities.BreakerQueues() {
				state, err := temporal.BreakerOf(ctx, queue)
				if err != nil {
					return adviseBreaker(err)
				}
				views = append(views, breakerView{activities.StageOf(queue), breakerText(state), state.Limit.Since, state.Limit.By, state.Limit.Why()})
			}
			return printList(c, views, table[breakerView]{"", []string{"STAGE", "STATE", "SINCE", "BY", "REASON"}, func(v breakerView) []any {
				since := ""
				if !v.Since.IsZero() {
					since = age(time.Since(v.Since))
				}
				return []any{v.Stage, v.State, since, v.By, v.Reason}
			}})
		}),
	}
}

// breakerText names the state of a circuit breaker.
func breakerText(s temporalns.BreakerStatus) string {
	switch phase := s.Limit.Phase(); {
	case s.Limit.Stopped() && s.Probes > 0:
		return fmt.Sprintf("open, probe %d", s.Probes)
	case phase == activities.PhaseThrottled:
		return fmt.Sprintf("throttled to %.2g/s", *s.Limit.PerSecond)
	case phase != "":
		return string(phase)
	case s.Limit.Stopped():
		return "open"
	case s.Running:
		return "watching"
	case s.Limit.PerSecond != nil:
		return fmt.Sprintf("at most %g/s", *s.Limit.PerSecond)
	}
	return "closed"
}

func (c *console) breakerOpenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "open STAGE", Short: "Open the circuit breaker of a stage",
		Long: `Opens the circuit breaker of a stage, or takes it over from the workers: then it
stays open until it is closed by hand or the time of --for has passed.`,
		Example: `  criticizer breaker open llm --reason "INC-7: provider's maintenance" --for 2h`,
	}
	reason := statementFlag(cmd, "reason", "", "why: `TEXT` that breaker list shows (required)")
	var length time.Duration
	flagOf(cmd, &length, "for", "close it after this `DURATION`, such as 30m (default never)", positive)
	c.onStage(cmd, func(ctx context.Context, temporal runs, stage, queue string) error {
		order := activities.BreakerOrder{By: c.operator(), Manual: true}
		until := "until it is closed"
		if length > 0 {
			order.Until = time.Now().Add(length).UTC()
			until = "until " + stamp(order.Until)
		}
		order.Reason = *reason + ", " + until
		if err := temporal.OpenBreaker(ctx, queue, order); err != nil {
			return adviseBreaker(err)
		}
		want := order.Limit(activities.PhaseOpen, 0)
		if err := awaitBreaker(ctx, temporal, queue, func(s temporalns.BreakerStatus) bool {
			return s.Limit.Stopped() && s.Limit.Why() == want.Why()
		}); err != nil {
			return err
		}
		return c.done("the circuit breaker of stage %s is open %s", stage, until)
	})
	return cmd
}

func (c *console) breakerCloseCommand() *cobra.Command {
	return c.onStage(&cobra.Command{
		Use: "close STAGE", Short: "Close the circuit breaker of a stage",
		Long: `Lets a stage run again. An open breaker becomes half-open: it closes when 31
activities have succeeded, or none is waiting. A half-open breaker closes.`,
	}, func(ctx context.Context, temporal runs, stage, queue string) error {
		state, err := temporal.BreakerOf(ctx, queue)
		switch {
		case err != nil:
			return adviseBreaker(err)
		case !state.Running && !state.Limit.Stopped() && !state.Limit.OfBreaker():
			return advise(fmt.Errorf("the circuit breaker of stage %s is not open: it is %s", stage, breakerText(state)), "criticizer breaker list shows all stages")
		}
		if err := temporal.CloseBreaker(ctx, queue); err != nil {
			return adviseBreaker(err)
		}
		if err := awaitBreaker(ctx, temporal, queue, func(s temporalns.BreakerStatus) bool {
			return s.Limit.Phase() != activities.PhaseOpen && (s.Limit.OfBreaker() || !s.Limit.Stopped())
		}); err != nil {
			return err
		}
		return c.done("the circuit breaker of stage %s is closing", stage)
	})
}

// awaitBreaker polls until the workers have carried out an order.
func awaitBreaker(ctx context.Context, temporal runs, queue string, done func(temporalns.BreakerStatus) bool) error {
	const timeout = 15 * time.Second
	for deadline := time.Now().Add(timeout); ; {
		state, err := temporal.BreakerOf(ctx, queue)
		switch {
		case err != nil:
			return adviseBreaker(err)
		case done(state):
			return nil
		case time.Now().After(deadline):
			return advise(fmt.Errorf("the circuit breaker of stage %s is still %s after %s: the order waits in Temporal", activities.StageOf(queue), breakerText(state), timeout),
				"check that a worker serves the stage workflows: it carries out the order")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func adviseBreaker(err error) error {
	if failure.ClassOf(err) == failure.ConfigInvalid {
		return advise(err, "upgrade the Temporal server, or stop the workers of the stage")
	}
	return advise(err, "check that the Temporal server is up and that temporal.namespace exists")
}
