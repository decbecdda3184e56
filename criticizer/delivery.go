package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

func (c *app) deliveryCommand() *cobra.Command {
	return group("delivery", "List, show, waive, readdress, resend or reconcile deliveries",
		`A delivery is one row of the outbox: one recipient of one version of a review.
Its status is one of

  pending  not sent, or not known to be sent
  sent     accepted by the mail server
  failed   permanently refused: no such mailbox, or a policy
  held     possibly sent, and no evidence shows it; needs an operator's decision
  waived   an operator decided that it need not be sent

docs/delivery.md has the steps of a repair.`,
		c.deliveryListCommand(), c.deliveryShowCommand(), c.waiveCommand(), c.readdressCommand(), c.resendCommand(), c.reconcileCommand())
}

func (c *app) deliveryListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List deliveries, those of the newest changelists first",
		Example: "  criticizer delivery list --status failed",
	}
	filter := store.DeliveryFilter{Limit: 1000}
	flagOf(cmd, &filter.Changelist, "changelist", "only of changelist `N`", review.ParseChangelist)
	wordFlag(cmd, &filter.Status, "status", "only of this `STATUS`: pending, sent, failed, held or waived",
		review.DeliveryPending, review.DeliverySent, review.DeliveryFailed, review.DeliveryHeld, review.DeliveryWaived)
	return list(c, cmd, &filter.Limit, deliveryTable, func(ctx context.Context, db *store.DB) ([]store.OutboxEntry, error) {
		return db.FindDeliveries(ctx, filter)
	})
}

func (c *app) deliveryShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show everything about one delivery",
		RunE: onRow(c, "delivery", findDelivery, func(ctx context.Context, db *store.DB, d store.OutboxEntry, _ []string) (err error) {
			view := deliveryView{OutboxEntry: d, Keys: c.tokens(d)}
			if view.Tries, err = db.Attempts(ctx, d.ID); err != nil {
				return err
			}
			if view.Trail, err = db.DeliveryTrail(ctx, d.ID); err != nil {
				return err
			}
			return c.print(view, view.print)
		}),
	}
}

// A decision is an operator's decision about one delivery.
type decision struct {
	delivery store.OutboxEntry // as it was before
	settle   time.Duration     // the longest that an attempt may take
	who, why string
	operands []string // after the ID
}

// decide completes a command that carries out a decision: it adds the flag
// --reason and reads the delivery. apply returns what was done, in a few words.
func (c *app) decide(cmd *cobra.Command, apply func(context.Context, *store.DB, decision) (string, error)) *cobra.Command {
	reason := statementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = onRow(c, "delivery", findDelivery, func(ctx context.Context, db *store.DB, d store.OutboxEntry, operands []string) error {
		cfg, err := c.config(settings.RoleOperator)
		if err != nil {
			return err
		}
		done, err := apply(ctx, db, decision{delivery: d, settle: cfg.Mail.Evidence.Settle, who: c.operator(), why: *reason, operands: operands})
		if err != nil {
			return adviseConflict(err, d, cfg.Mail.Evidence.Settle)
		}
		if err := c.done("delivery %d, %s: %s", d.ID, reviewName(d.Changelist, d.Version), done); err != nil {
			return err
		}
		return c.noteNext(ctx, db, d)
	})
	return cmd
}

func (c *app) waiveCommand() *cobra.Command {
	return c.decide(&cobra.Command{
		Use: "waive ID", Short: "Let a review finish without this recipient",
		Example: `  criticizer delivery waive 7 --reason "INC-49: has left the company"`,
	}, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		return "waived", db.WaiveDelivery(ctx, d.delivery.ID, d.who, d.why)
	})
}

func (c *app) resendCommand() *cobra.Command {
	cmd := c.decide(&cobra.Command{
		Use: "resend [ID]", Short: "Send failed or held deliveries again",
		Long: `Declares that a mail was not accepted, so that it is sent again, and that its
address works. Search for a held mail at the mail server first. Without an ID all
failed and held deliveries of a class, a changelist or a time are sent again.`,
		Example: `  criticizer delivery resend 8 --reason "INC-46: not in the mail log"
  criticizer delivery resend --class RECIPIENT_REJECTED --since 12h --reason "INC-47: relay repaired" --dry-run`,
	}, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		return "to be sent again", db.ResendDelivery(ctx, d.delivery.ID, d.settle, d.who, d.why)
	})
	filter := store.DeliveryFilter{Limit: mostListed}
	wordFlag(cmd, &filter.Class, "class", "all failed with this error `CLASS`; held ones have DELIVERY_AMBIGUOUS", errorClasses()...)
	flagOf(cmd, &filter.Changelist, "changelist", "all of changelist `N`", review.ParseChangelist)
	flagOf(cmd, &filter.Since, "since", "all whose last attempt began at most `AGE` ago, such as 12h", positive)
	flagOf(cmd, &filter.Until, "until", "all whose last attempt began more than `AGE` ago", positive)
	dryRun := cmd.Flags().Bool("dry-run", false, "print what would be sent again, and exit")
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		chosen := filter != store.DeliveryFilter{Limit: mostListed}
		switch {
		case len(args) == 1 && (chosen || *dryRun), len(args) == 0 && !chosen:
			return badUsage("resend wants an ID, or one of --class, --changelist, --since and --until")
		case len(args) == 1:
			return one(cmd, args)
		}
		reason := cmd.Flag("reason").Value.String()
		return c.onDatabase(func(ctx context.Context, db *store.DB, _ []string) error {
			return c.resendAll(ctx, db, filter, reason, *dryRun)
		})(cmd, args)
	}
	return cmd
}

// resendAll sends the failed and held deliveries again that filter chooses, and skips those
// that cannot be sent again now.
func (c *app) resendAll(ctx context.Context, db *store.DB, filter store.DeliveryFilter, reason string, dryRun bool) error {
	cfg, err := c.config(settings.RoleOperator)
	if err != nil {
		return err
	}
	found, err := db.FindDeliveries(ctx, filter)
	if err != nil {
		return err
	}
	again := []store.OutboxEntry{}
	skipped := 0
	for _, d := range found {
		if d.Status != review.DeliveryFailed && d.Status != review.DeliveryHeld {
			continue
		}
		if !dryRun {
			err := db.ResendDelivery(ctx, d.ID, cfg.Mail.Evidence.Settle, c.operator(), reason)
			if failure.ClassOf(err) == failure.WriteConflict {
				skipped++
				continue
			}
			if err != nil {
				return err
			}
		}
		again = append(again, d)
	}
	if err := printList(c, again, deliveryTable); err != nil {
		return err
	}
	switch {
	case dryRun:
		c.note("would be sent again: %d", len(again))
	default:
		c.note("to be sent again: %d; left as they are, because an attempt may still run: %d", len(again), skipped)
		c.note("replay the dead letters of their reviews; criticizer delivery reconcile sends for reviews that have ended")
	}
	return nil
}

func (c *app) readdressCommand() *cobra.Command {
	return c.decide(&cobra.Command{
		Use: "readdress ID ADDRESS", Short: "Replace a delivery that was not accepted by one to another address",
		Example: `  criticizer delivery readdress 7 olga@example.com --reason "INC-50: new address"`,
	}, func(ctx context.Context, db *store.DB, d decision) (string, error) {
		address, err := review.ParseAddress(d.operands[0])
		if err != nil {
			return "", badUsage("parse new address: %w", err)
		}
		id, err := db.ReaddressDelivery(ctx, d.delivery.ID, address, d.who, d.why)
		return fmt.Sprintf("waived and replaced by delivery %d", id), err
	})
}

// adviseConflict adds the hint for a delivery whose status does not allow the
// decision.
func adviseConflict(err error, d store.OutboxEntry, settle time.Duration) error {
	switch {
	case failure.ClassOf(err) != failure.WriteConflict:
		return err
	case d.Status == review.DeliverySent:
		return advise(err, "a sent delivery is not sent again: criticizer-starter change-commit --review-version %d %d makes a new review", d.Version+1, d.Changelist)
	case d.Begun && d.JobState == review.JobInProgress:
		return advise(err, "wait until the review has ended: it searches for the mail itself")
	case d.Begun && time.Since(*d.LastAttemptAt) < settle:
		return advise(err, "its last attempt may take until %s (mail.settle): search for the mail after that, then decide", stamp(d.LastAttemptAt.Add(settle)))
	case d.Begun || d.NotificationID != "":
		return advise(err, "find out from the mail server whether it was accepted; then criticizer delivery resend or waive %d", d.ID)
	case d.Status == review.DeliveryPending:
		return advise(err, "it is sent when the review continues; criticizer status %d shows the review", d.Changelist)
	}
	return advise(err, "criticizer delivery show %d shows its history", d.ID)
}

// noteNext prints how the review of a delivery continues.
func (c *app) noteNext(ctx context.Context, db *store.DB, d store.OutboxEntry) error {
	switch d.JobState {
	case review.JobRetryableFailed:
		letters, err := db.DeadLetters(ctx, store.DeadLetterFilter{Changelist: d.Changelist, States: unresolved})
		if err != nil {
			return err
		}
		for _, l := range letters {
			if l.Version == d.Version {
				c.note("to continue its review: criticizer deadletter replay %d --reason TEXT", l.ID)
			}
		}
	case review.JobSucceeded:
		c.note("its review has ended: criticizer delivery reconcile, or the next scheduled one, sends what is unsent")
	case review.JobCanceled:
		c.note("its review was canceled: nothing is sent")
	}
	return nil
}

// reconcileTimeout is longer than a reconciliation takes if the mail server responds.
const reconcileTimeout = 5 * time.Minute

func (c *app) reconcileCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reconcile", Short: "Compare deliveries with the mail server's records now",
		Long: `Compares deliveries with the mail server's records now instead of at the next
scheduled time, and sends the unsent deliveries of reviews that have ended.`,
		RunE: c.onTemporal(func(ctx context.Context, temporal runs, _ []string) error {
			ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
			defer cancel()
			result, err := temporal.reconcile(ctx)
			switch {
			case failure.ClassOf(err) == failure.NotFound:
				return advise(err, "start a worker that serves the stage workflows: it creates the schedule")
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				return advise(fmt.Errorf("the reconciliation has not ended after %s", reconcileTimeout),
					"it continues in the background; check that a worker serves the stage notify and that the mail server responds")
			case err != nil:
				return advise(err, "see the run criticizer-reconciliation in the Temporal UI, and the log of the worker")
			}
			return c.print(result, func(w io.Writer) { writeTable(w, "", reconciledRows(result)) })
		}),
	}
}

func reconciledRows(r activities.Reconciled) [][]string {
	rows := [][]string{row("checked", r.Checked)}
	for _, line := range []struct {
		n    int
		what string
	}{
		{r.Confirmed, "confirmed: sent, and the mail server has a record"},
		{r.Settled, "found to be accepted, and marked sent"},
		{r.Sent, "sent now"},
		{r.Refused, "permanently refused: criticizer delivery list --status failed"},
		{r.Requeued, "held, found not to be accepted, and released"},
		{r.Unproven, "marked sent without a record at the mail server: see the worker's log"},
		{r.Notices, "authors notified that their change is not reviewed"},
		{r.Missing, "without a record at the mail server, too many at once: nothing was sent again, check the source of evidence"},
		{r.Open, "still open"},
	} {
		if line.n > 0 {
			rows = append(rows, row(fmt.Sprint("  ", line.n), line.what))
		}
	}
	return rows
}
