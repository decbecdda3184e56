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

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

func (c *console) topCommand() *cobra.Command {
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
	At          time.Time      `json:"at"`
	Reviews     map[string]int `json:"reviews"` // by state; nil if Postgres could not be asked
	OldestS     int            `json:"oldest_review_seconds"`
	Stages      []stageView    `json:"stages"`
	DeadLetters []letterCount  `json:"dead_letters"`
	Escalated   int            `json:"escalated"`
	OldestDeadS int            `json:"oldest_dead_letter_seconds"`
	Outbox      outboxView     `json:"outbox"`
}

// A stageView is one task queue, and the reviews that are in its stage.
type stageView struct {
	Stage   string `json:"stage"`
	Reviews *int64 `json:"reviews,omitempty"` // nil if the stage is not counted
	Waiting int64  `json:"waiting"`           // tasks that wait for a worker
	OldestS int    `json:"oldest_seconds"`
	// Outages are the circuit breakers of the stage that are not closed, one per worker.
	Outages []store.Outage `json:"outages,omitempty"`
}

// A letterCount counts the unresolved dead letters of one kind.
type letterCount struct {
	Stage string `json:"stage"`
	Class string `json:"class"`
	State string `json:"state"`
	Count int    `json:"count"`
}

type outboxView struct {
	Waiting   int `json:"waiting"`
	OldestS   int `json:"oldest_seconds"`
	Ambiguous int `json:"ambiguous"`
}

// readOverview asks Postgres and Temporal. If one of them cannot be asked, it
// returns what the other has, and the error.
func readOverview(ctx context.Context, db *store.DB, cfg *settings.Config) (overview, error) {
	o := overview{At: time.Now().UTC().Truncate(time.Second), DeadLetters: []letterCount{}, Stages: []stageView{}}
	figures, err := db.Figures(ctx)
	if err != nil {
		err = adviseDatabase(err)
	} else {
		o.Reviews = map[string]int{}
	}
	for _, f := range figures {
		o.add(f)
	}
	outages, errOutages := db.Outages(ctx)
	if err == nil && errOutages != nil {
		err = adviseDatabase(errOutages)
	}
	return o, errors.Join(err, o.addStages(ctx, cfg, outages))
}

// addStages asks Temporal, on a new connection each time: a watch may run longer
// than a server.
func (o *overview) addStages(ctx context.Context, cfg *settings.Config, outages []store.Outage) error {
	temporal, err := dialTemporal(ctx, cfg)
	if err != nil {
		return err
	}
	defer temporal.Close()
	for _, queue := range contract.WatchedQueues() {
		view, err := temporal.stage(ctx, contract.StageOf(queue), queue)
		if err != nil {
			return advise(err, "criticizer doctor checks the installation")
		}
		for _, outage := range outages {
			if outage.Stage == view.Stage {
				view.Outages = append(view.Outages, outage)
			}
		}
		o.Stages = append(o.Stages, view)
	}
	return nil
}

// stage reads one task queue and counts the reviews that are in its stage.
func (r runs) stage(ctx context.Context, stage, queue string) (stageView, error) {
	state, err := r.QueueState(ctx, queue, queue == contract.QueueBookkeeping)
	if err != nil {
		return stageView{}, fmt.Errorf("read task queue %s: %w", queue, err)
	}
	v := stageView{Stage: stage, Waiting: state.Waiting, OldestS: int(state.Oldest.Seconds())}
	if slices.Contains([]review.Stage{review.StageFetch, review.StageLLM, review.StageNotify}, review.Stage(stage)) {
		reviews, err := r.inStage(ctx, stage)
		if err != nil {
			return v, err
		}
		v.Reviews = &reviews
	}
	return v, nil
}

// add adds one of the figures; the others are for monitoring only.
func (o *overview) add(f store.Figure) {
	n := int(f.Value)
	switch f.Name {
	case "criticizer_reviews":
		o.Reviews[f.Labels["state"]] = n
	case "criticizer_dead_letters":
		if slices.Contains(unresolved, store.LetterState(f.Labels["state"])) {
			o.DeadLetters = append(o.DeadLetters, letterCount{f.Labels["stage"], f.Labels["class"], f.Labels["state"], n})
		}
	}
	for name, to := range map[string]*int{
		"criticizer_review_oldest_seconds":      &o.OldestS,
		"criticizer_dead_letters_escalated":     &o.Escalated,
		"criticizer_dead_letter_oldest_seconds": &o.OldestDeadS,
		"criticizer_outbox_depth":               &o.Outbox.Waiting,
		"criticizer_outbox_oldest_seconds":      &o.Outbox.OldestS,
		"criticizer_deliveries_ambiguous":       &o.Outbox.Ambiguous,
	} {
		if f.Name == name {
			*to = n
		}
	}
}

// print writes the overview as tables, with a blank line before each.
func (o overview) print(w io.Writer) {
	fmt.Fprintln(w, stamp(o.At))
	if o.Reviews != nil {
		fmt.Fprintln(w)
		writeTable(w, "", o.countRows())
	}
	for _, rows := range [][][]string{o.stageRows(), o.letterRows()} {
		if len(rows) > 1 { // more than a header
			fmt.Fprintln(w)
			writeTable(w, "", rows)
		}
	}
}

func (o overview) countRows() [][]string {
	letters := 0
	for _, l := range o.DeadLetters {
		letters += l.Count
	}
	return [][]string{
		{"reviews", fmt.Sprintf("%d in progress%s", o.Reviews["in_progress"], oldest(o.OldestS))},
		{"", fmt.Sprintf("%d succeeded in 24 hours, %d dead-lettered", o.Reviews["succeeded"], o.Reviews["retryable_failed"])},
		{"dead letters", fmt.Sprintf("%d unresolved%s, %d escalated", letters, oldest(o.OldestDeadS), o.Escalated)},
		{"outbox", fmt.Sprintf("%d waiting%s, %d with an unknown result", o.Outbox.Waiting, oldest(o.Outbox.OldestS), o.Outbox.Ambiguous)},
	}
}

func (o overview) stageRows() [][]string {
	rows := [][]string{{"STAGE", "REVIEWS", "WAITING", "LONGEST", "BREAKER"}}
	for _, s := range o.Stages {
		reviews, breaker := "", "closed"
		if s.Reviews != nil {
			reviews = fmt.Sprint(*s.Reviews)
		}
		switch {
		case s.Stage == contract.StageOf(contract.QueueBookkeeping):
			breaker = "" // it has none
		case len(s.Outages) > 0:
			breaker = outageText(s.Outages[0])
		}
		rows = append(rows, row(s.Stage, reviews, s.Waiting, seconds(s.OldestS), breaker))
	}
	return rows
}

// outageText tells why reviews of a stage wait.
func outageText(o store.Outage) string {
	state := "open"
	if o.HalfOpen {
		state = "half-open"
	}
	reason, _, _ := strings.Cut(o.Reason, "\n")
	return fmt.Sprintf("%s for %s at %s, %s: %s", state, age(time.Since(o.Since)), o.Worker, o.Class, reason)
}

func (o overview) letterRows() [][]string {
	rows := [][]string{{"STAGE", "CLASS", "STATE", "LETTERS"}}
	for _, l := range o.DeadLetters {
		rows = append(rows, row(l.Stage, l.Class, l.State, l.Count))
	}
	return rows
}

func seconds(n int) string { return age(time.Duration(n) * time.Second) }

// oldest formats the age of the oldest of several; 0 means that there is none.
func oldest(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (oldest %s)", seconds(n))
}

// inStage counts the running reviews of a stage. The server's index lags a moment behind.
func (r runs) inStage(ctx context.Context, stage string) (int64, error) {
	counted, err := r.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: r.Name,
		Query:     fmt.Sprintf(`WorkflowType = "ReviewChangelist" AND ExecutionStatus = "Running" AND %s = %q`, contract.AttributeStage.GetName(), stage),
	})
	if err != nil {
		return 0, fmt.Errorf("count reviews in stage %s: %w", stage, err)
	}
	return counted.GetCount(), nil
}
