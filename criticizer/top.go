package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

func (c *app) topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "top", Short: "Show what is in progress: reviews, queues, breakers, dead letters, deliveries",
		Long: `Shows the reviews in progress by stage, the tasks that wait for workers, the
circuit breakers, the dead letters, and the unsent deliveries. The command watch
repeats it.`,
		Example: `  watch -n 2 criticizer top
  criticizer top --json | jq .outbox.waiting`,
		Annotations: map[string]string{noProgress: "yes"},
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		db, cfg, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		o, err := readOverview(cmd.Context(), db, cfg)
		return errors.Join(c.print(o, o.print), err)
	}
	return cmd
}

// An overview is the state of the installation at one moment.
type overview struct {
	At          time.Time         `json:"at"`
	Reviews     map[string]int    `json:"reviews"` // by state; nil if Postgres could not be asked
	OldestS     int               `json:"oldest_review_seconds"`
	Stages      []stageView       `json:"stages"`
	DeadLetters []deadLetterCount `json:"dead_letters"`
	Escalated   int               `json:"escalated"`
	OldestDeadS int               `json:"oldest_dead_letter_seconds"`
	Outbox      struct {
		Waiting   int `json:"waiting"`
		OldestS   int `json:"oldest_seconds"`
		Ambiguous int `json:"ambiguous"`
	} `json:"outbox"`
}

// A stageView is one task queue, and the reviews that are in its stage.
type stageView struct {
	Stage   string `json:"stage"`
	Reviews *int64 `json:"reviews,omitempty"` // nil if the queue is not that of a stage
	Waiting int64  `json:"waiting"`           // tasks that wait for a worker
	OldestS int    `json:"oldest_seconds"`
	Stuck   string `json:"stuck,omitempty"` // what keeps workers from the queue
	// Outages are the circuit breakers of the stage that are not closed, one per worker.
	Outages []store.Outage `json:"outages,omitempty"`
}

// A deadLetterCount counts the unresolved dead letters of one kind.
type deadLetterCount struct {
	Stage string `json:"stage"`
	Class string `json:"class"`
	State string `json:"state"`
	Count int    `json:"count"`
}

// readOverview asks Postgres and Temporal. If one of them cannot be asked, it
// returns what the other has, and the error.
func readOverview(ctx context.Context, db *store.DB, cfg *settings.Config) (overview, error) {
	o := overview{At: time.Now().UTC().Truncate(time.Second), DeadLetters: []deadLetterCount{}, Stages: []stageView{}}
	figures, err := db.Figures(ctx)
	if err != nil {
		err = adviseDatabase(cfg, err)
	} else {
		o.Reviews = map[string]int{}
	}
	for _, f := range figures { // the others are for monitoring only
		n := int(f.Value)
		switch f.Name {
		case "criticizer_reviews":
			o.Reviews[f.Labels["state"]] = n
		case "criticizer_dead_letters":
			if slices.Contains(unresolved, store.DeadLetterState(f.Labels["state"])) {
				o.DeadLetters = append(o.DeadLetters, deadLetterCount{f.Labels["stage"], f.Labels["class"], f.Labels["state"], n})
			}
		case "criticizer_review_oldest_seconds":
			o.OldestS = n
		case "criticizer_dead_letters_escalated":
			o.Escalated = n
		case "criticizer_dead_letter_oldest_seconds":
			o.OldestDeadS = n
		case "criticizer_outbox_depth":
			o.Outbox.Waiting = n
		case "criticizer_outbox_oldest_seconds":
			o.Outbox.OldestS = n
		case "criticizer_deliveries_ambiguous":
			o.Outbox.Ambiguous = n
		}
	}
	outages, errOutages := db.Outages(ctx)
	if err == nil && errOutages != nil {
		err = adviseDatabase(cfg, errOutages)
	}
	temporal, errTemporal := dialTemporal(ctx, cfg)
	if errTemporal != nil {
		return o, errors.Join(err, errTemporal)
	}
	defer temporal.Close()
	for _, queue := range contract.WatchedQueues() {
		v, errStage := temporal.stage(ctx, queue)
		if errStage != nil {
			return o, errors.Join(err, advise(errStage, "to check the installation: criticizer doctor"))
		}
		v.Outages = ofStage(v.Stage, outages)
		o.Stages = append(o.Stages, v)
	}
	return o, err
}

// stage reads one task queue and counts the running reviews that are in its stage. The
// server's index of reviews lags a moment behind.
func (r runs) stage(ctx context.Context, queue string) (stageView, error) {
	stage := contract.StageOf(queue)
	state, err := r.QueueState(ctx, queue, queue == contract.QueueBookkeeping)
	if err != nil {
		return stageView{}, fmt.Errorf("read task queue %s: %w", queue, err)
	}
	v := stageView{Stage: stage, Waiting: state.Waiting, OldestS: int(state.Oldest.Seconds()), Stuck: state.Stuck()}
	if slices.Contains(review.Stages(), review.Stage(stage)) {
		counted, err := r.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: r.Name,
			Query:     fmt.Sprintf(`WorkflowType = "ReviewChangelist" AND ExecutionStatus = "Running" AND %s = %q`, contract.AttributeStage.GetName(), stage),
		})
		if err != nil {
			return v, fmt.Errorf("count reviews in stage %s: %w", stage, err)
		}
		v.Reviews = new(counted.GetCount())
	}
	return v, nil
}

// print writes the overview as tables, with a blank line before each.
func (o overview) print(w io.Writer) {
	fmt.Fprintln(w, operator.Stamp(o.At))
	letters := 0
	deadLetterRows := [][]string{{"STAGE", "CLASS", "STATE", "LETTERS"}}
	for _, l := range o.DeadLetters {
		letters += l.Count
		deadLetterRows = append(deadLetterRows, operator.Row(l.Stage, l.Class, l.State, l.Count))
	}
	if o.Reviews != nil {
		fmt.Fprintln(w)
		operator.WriteTable(w, "", [][]string{
			{"reviews", fmt.Sprintf("%d in progress%s", o.Reviews["in_progress"], oldest(o.OldestS))},
			{"", fmt.Sprintf("%d succeeded in 24 hours, %d dead-lettered", o.Reviews["succeeded"], o.Reviews["retryable_failed"])},
			{"dead letters", fmt.Sprintf("%d unresolved%s, %d escalated", letters, oldest(o.OldestDeadS), o.Escalated)},
			{"outbox", fmt.Sprintf("%d waiting%s, %d with an unknown result", o.Outbox.Waiting, oldest(o.Outbox.OldestS), o.Outbox.Ambiguous)},
		})
	}
	stageRows := [][]string{{"STAGE", "REVIEWS", "WAITING", "LONGEST", "BREAKER"}}
	for _, s := range o.Stages {
		reviews, breaker := "", "closed"
		if s.Reviews != nil {
			reviews = fmt.Sprint(*s.Reviews)
		}
		switch {
		case len(s.Outages) > 0:
			breaker = outageText(s.Outages[0])
		case s.Stuck != "":
			breaker = s.Stuck
		case s.Stage == contract.StageOf(contract.QueueBookkeeping):
			breaker = "" // it has none
		}
		stageRows = append(stageRows, operator.Row(s.Stage, reviews, s.Waiting, operator.Age(time.Duration(s.OldestS)*time.Second), breaker))
	}
	for _, rows := range [][][]string{stageRows, deadLetterRows} {
		if len(rows) > 1 { // more than a header
			fmt.Fprintln(w)
			operator.WriteTable(w, "", rows)
		}
	}
}

// oldest formats the age of the oldest of several; 0 means that there is none.
func oldest(seconds int) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf(" (oldest %s)", operator.Age(time.Duration(seconds)*time.Second))
}

// outageText is why reviews of a stage wait.
func outageText(o store.Outage) string {
	state := "open"
	if o.HalfOpen {
		state = "half-open"
	}
	reason, _, _ := strings.Cut(o.Reason, "\n")
	return fmt.Sprintf("%s for %s at %s, %s: %s", state, operator.Age(time.Since(o.Since)), o.Worker, o.ErrorClass, reason)
}
