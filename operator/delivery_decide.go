package main

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// A decision is an operator's word about one delivery.
type decision struct {
	row store.OutboxEntry // as it was before
	// settle is how long an attempt may be under way.
	settle time.Duration
	who    string
	why    string
	// operands are the arguments behind the id.
	operands []string
}

// decide reads the id, the reason and so many operands behind the id, and has
// apply carry the decision out. apply returns what was done, in a few words.
func (c console) decide(ctx context.Context, name string, args []string, operands int,
	apply func(context.Context, *store.DB, decision) (done string, err error),
) error {
	flags := c.flags(name, deliveryUsage)
	reason := flags.String("reason", "", "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	id, err := deliveryID(flags, rest, 1+operands)
	if err != nil {
		return err
	}
	why, err := statement("reason", *reason)
	if err != nil {
		return err
	}
	db, cfg, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	row, err := findDelivery(ctx, db, id)
	if err != nil {
		return err
	}
	done, err := apply(ctx, db, decision{row: row, settle: cfg.Mail.Settle, who: c.operator(), why: why, operands: rest[1:]})
	if err != nil {
		return adviseConflict(err, row, cfg.Mail.Settle)
	}
	fmt.Fprintf(c.stdout, "delivery %d, changelist %d v%d: %s\n", id, row.Changelist, row.Version, done)
	return c.printNext(ctx, db, row)
}

// waiveDelivery implements criticizer delivery waive.
func waiveDelivery(ctx context.Context, args []string, c console) error {
	return c.decide(ctx, "waive", args, 0, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		return "waived", db.WaiveDelivery(ctx, d.row.ID, d.who, d.why)
	})
}

// resendDelivery implements criticizer delivery resend.
func resendDelivery(ctx context.Context, args []string, c console) error {
	return c.decide(ctx, "resend", args, 0, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		return "to be sent again", db.ResendDelivery(ctx, d.row.ID, d.settle, d.who, d.why)
	})
}

// readdressDelivery implements criticizer delivery readdress.
func readdressDelivery(ctx context.Context, args []string, c console) error {
	return c.decide(ctx, "readdress", args, 1, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		address, err := review.ParseAddress(d.operands[0])
		if err != nil {
			return "", usageError{fmt.Errorf("the new address is %w", err)}
		}
		id, err := db.ReaddressDelivery(ctx, d.row.ID, address, d.who, d.why)
		return fmt.Sprintf("waived, delivery %d takes its place", id), err
	})
}

// adviseConflict says what to do about a delivery that is not in a state to be
// decided about.
func adviseConflict(err error, row store.OutboxEntry, settle time.Duration) error {
	switch {
	case failure.ClassOf(err) != failure.WriteConflict:
		return err
	case row.Status == review.DeliverySent:
		return advise(err, "what was sent is not sent again: starter change-commit --review-version %d %d reviews anew", row.Version+1, row.Changelist)
	case row.Begun && row.JobState == review.JobInProgress:
		return advise(err, "wait until the review has ended: it looks for the mail itself")
	case row.Begun && time.Since(*row.LastAttemptAt) < settle:
		return advise(err, "its last attempt may be under way until %s (mail.settle): look for the mail after that, and decide then", stamp(row.LastAttemptAt.Add(settle)))
	case row.Begun || row.NotificationID != "":
		return advise(err, "find out from the mail server whether it was accepted; then criticizer delivery resend or waive %d", row.ID)
	case row.Status == review.DeliveryPending:
		return advise(err, "it is sent when the review goes on; criticizer status %d tells where it stands", row.Changelist)
	}
	return advise(err, "criticizer delivery show %d tells its story", row.ID)
}

// printNext says how the review that a decision was about goes on.
func (c console) printNext(ctx context.Context, db *store.DB, row store.OutboxEntry) error {
	switch row.JobState {
	case review.JobDeadLettered:
		letters, err := db.DeadLetters(ctx, store.LetterFilter{Changelist: row.Changelist, States: unresolved})
		if err != nil {
			return err
		}
		for _, l := range letters {
			if l.Version == row.Version {
				fmt.Fprintf(c.stdout, "its review goes on with: criticizer deadletter replay %d -evidence TEXT\n", l.ID)
			}
		}
	case review.JobSucceeded:
		fmt.Fprintln(c.stdout, "its review is over: what is unsent is sent by criticizer delivery reconcile, or by the next scheduled one")
	case review.JobCanceled:
		fmt.Fprintln(c.stdout, "its review was canceled: nothing is sent")
	}
	return nil
}
