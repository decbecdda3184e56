package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// view reads one task queue and counts the reviews that are in its stage.
func (r runs) view(ctx context.Context, b breakerQueue) (stageView, error) {
	state, err := r.QueueState(ctx, b.queue)
	if err != nil {
		return stageView{}, fmt.Errorf("look at task queue %s: %w", b.queue, err)
	}
	v := stageView{Stage: b.stage, Waiting: state.Waiting, OldestS: int(state.Oldest.Seconds()), BreakerOpen: state.Limit.OfBreaker()}
	if slices.Contains([]review.Stage{review.StageFetch, review.StageLLM, review.StageNotify}, review.Stage(b.stage)) {
		reviews, err := r.InStage(ctx, b.stage)
		if err != nil {
			return v, err
		}
		v.Reviews = &reviews
	}
	return v, nil
}

// print writes the overview for people.
func (o overview) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", stamp(o.At))
	if o.Reviews != nil {
		fmt.Fprintln(w)
		o.printCounts(w)
	}
	if len(o.Stages) > 0 {
		fmt.Fprintln(w)
		o.printStages(w)
	}
	o.printSlots(w)
	if len(o.DeadLetters) > 0 {
		rows := [][]string{{"STAGE", "CLASS", "STATE", "LETTERS"}}
		for _, l := range o.DeadLetters {
			rows = append(rows, []string{l.Stage, l.Class, l.State, fmt.Sprint(l.Count)})
		}
		fmt.Fprintln(w)
		table(w, "", rows)
	}
}

func (o overview) printCounts(w io.Writer) {
	letters := 0
	for _, l := range o.DeadLetters {
		letters += l.Count
	}
	table(w, "", [][]string{
		{"reviews", fmt.Sprintf("%d in progress%s", o.Reviews["in_progress"], oldest(o.OldestS))},
		{"", fmt.Sprintf("%d succeeded, %d dead-lettered", o.Reviews["succeeded"], o.Reviews["dead_lettered"])},
		{"dead letters", fmt.Sprintf("%d unresolved%s, %d escalated", letters, oldest(o.OldestDeadS), o.Escalated)},
		{"outbox", fmt.Sprintf("%d waiting%s, %d of unknown end", o.Outbox.Waiting, oldest(o.Outbox.OldestS), o.Outbox.Ambiguous)},
	})
}

func (o overview) printStages(w io.Writer) {
	rows := [][]string{{"STAGE", "REVIEWS", "WAITING", "LONGEST", "BREAKER"}}
	for _, s := range o.Stages {
		reviews, breaker := "", "free"
		if s.Reviews != nil {
			reviews = fmt.Sprint(*s.Reviews)
		}
		switch {
		case s.Stage == activities.StageOf(activities.QueueBookkeeping):
			breaker = "" // it has none
		case s.BreakerOpen:
			breaker = "braked"
		}
		rows = append(rows, []string{s.Stage, reviews, fmt.Sprint(s.Waiting), age(time.Duration(s.OldestS) * time.Second), breaker})
	}
	table(w, "", rows)
}

// printSlots leaves out the paths of which nobody has or awaits a slot.
func (o overview) printSlots(w io.Writer) {
	rows := [][]string{{"SLOTS", "WAITING", "LONGEST", "NEXT", "OF CHANGES TO"}}
	for _, s := range o.Slots {
		if s.Taken == 0 && s.Waiting == 0 {
			continue
		}
		slots, longest, next := fmt.Sprintf("%d of %d", s.Taken, s.Limit), "-", "-"
		if s.Limit == 0 {
			slots = fmt.Sprint(s.Taken)
		}
		if s.Waiting > 0 {
			longest, next = age(time.Duration(s.OldestS)*time.Second), s.Next
		}
		rows = append(rows, []string{slots, fmt.Sprint(s.Waiting), longest, next, printable(s.Path)})
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		table(w, "", rows)
	}
}

// oldest says how old the oldest of several is; nothing if there is none.
func oldest(seconds int) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf(" (oldest %s)", age(time.Duration(seconds)*time.Second))
}
