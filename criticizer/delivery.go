package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows"
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

criticizer help delivery.md has the steps of a repair.`,
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

// decide completes a command that carries out an operator's decision about deliveries. allows
// returns whether the state of a delivery allows it.
func (c *app) decide(cmd *cobra.Command, done string, allows func(d store.OutboxEntry, settle time.Duration) bool, apply func(ctx context.Context, db *store.DB, d store.OutboxEntry, settle time.Duration, who, why string) error) *cobra.Command {
	filter := store.DeliveryFilter{Limit: mostListed}
	wordFlag(cmd, &filter.Class, "class", "all failed with this error `CLASS`; held ones have DELIVERY_AMBIGUOUS", texts(errorClasses())...)
	flagOf(cmd, &filter.Changelist, "changelist", "all of changelist `N`", review.ParseChangelist)
	flagOf(cmd, &filter.Since, "since", "all whose last attempt began at most `AGE` ago, such as 12h", positive)
	flagOf(cmd, &filter.Until, "until", "all whose last attempt began more than `AGE` ago", positive)
	chosen := &bulk[store.OutboxEntry]{
		of: "delivery", filters: []string{"class", "changelist", "since", "until"}, find: findDelivery, table: deliveryTable,
		all: func(ctx context.Context, db *store.DB) ([]store.OutboxEntry, error) {
			found, err := db.FindDeliveries(ctx, filter)
			return slices.DeleteFunc(found, func(d store.OutboxEntry) bool {
				return d.Status != review.DeliveryFailed && d.Status != review.DeliveryHeld
			}), err
		},
		as: func(d store.OutboxEntry) itemResult {
			return itemResult{ID: d.ID, Changelist: d.Changelist, Version: d.Version}
		},
	}
	chosen.addDryRun(cmd)
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := chosen.parse(cmd, args); err != nil {
			return err
		}
		ctx := cmd.Context()
		db, cfg, err := c.database(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		deliveries, err := chosen.read(ctx, db)
		if err != nil {
			return err
		}
		settle, decided := cfg.Mail.Evidence.Settle, []store.OutboxEntry{}
		err = chosen.run(c, deliveries, done, func(d store.OutboxEntry) error {
			if allows(d, settle) {
				return nil
			}
			return settledError{fmt.Errorf("delivery %d is %s", d.ID, d.Status)}
		}, func(d store.OutboxEntry) (string, error) {
			if err := apply(ctx, db, d, settle, operator.Name(c.getenv), *reason); err != nil {
				return "", adviseConflict(err, d, settle)
			}
			decided = append(decided, d)
			return "", nil
		})
		if len(decided) == 0 || err != nil && !errors.Is(err, operator.ErrReported) {
			return err
		}
		return errors.Join(err, c.noteNext(ctx, db, decided))
	}
	return cmd
}

func (c *app) waiveCommand() *cobra.Command {
	return c.decide(&cobra.Command{
		Use: "waive [ID...]", Short: "Let reviews finish without these recipients",
		Long: `Lets a review finish without a recipient. Without an ID all failed and held
deliveries of a class, a changelist or a time are waived.`,
		Example: `  criticizer delivery waive 7 --reason "INC-49: has left the company"`,
	}, "waived", func(d store.OutboxEntry, _ time.Duration) bool {
		return d.Status != review.DeliverySent && d.Status != review.DeliveryWaived
	}, func(ctx context.Context, db *store.DB, d store.OutboxEntry, _ time.Duration, who, why string) error {
		return db.WaiveDelivery(ctx, d.ID, who, why)
	})
}

func (c *app) resendCommand() *cobra.Command {
	return c.decide(&cobra.Command{
		Use: "resend [ID...]", Short: "Send failed or held deliveries again",
		Long: `Declares that a mail was not accepted, so that it is sent again, and that its
address works. Search for a held mail at the mail server first. Without an ID all
failed and held deliveries of a class, a changelist or a time are sent again.`,
		Example: `  criticizer delivery resend 8 --reason "INC-46: not in the mail log"
  criticizer delivery resend --class RECIPIENT_REJECTED --since 12h --reason "INC-47: relay repaired" --dry-run`,
	}, "requeued", func(d store.OutboxEntry, settle time.Duration) bool {
		switch {
		case d.Forgotten:
			return false
		case d.Begun && time.Since(*d.LastAttemptAt) < settle:
			return false
		case d.Status == review.DeliveryWaived, d.Status == review.DeliveryPending && (d.Begun || d.NotificationID != ""):
			return d.JobState != review.JobInProgress
		}
		return d.Status == review.DeliveryFailed || d.Status == review.DeliveryHeld
	}, func(ctx context.Context, db *store.DB, d store.OutboxEntry, settle time.Duration, who, why string) error {
		return db.ResendDelivery(ctx, d.ID, settle, who, why)
	})
}

func (c *app) readdressCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "readdress ID ADDRESS", Short: "Replace a delivery that was not accepted by one to another address",
		Example: `  criticizer delivery readdress 7 olga@example.com --reason "INC-50: new address"`,
	}
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = onRow(c, "delivery", findDelivery, func(ctx context.Context, db *store.DB, d store.OutboxEntry, operands []string) error {
		address, err := review.ParseAddress(operands[0])
		if err != nil {
			return badUsage("parse new address: %w", err)
		}
		id, err := db.ReaddressDelivery(ctx, d.ID, address, operator.Name(c.getenv), *reason)
		if err != nil {
			return adviseConflict(err, d, 0)
		}
		return errors.Join(c.done("delivery %d, %s: waived and replaced by delivery %d", d.ID, reviewName(d.Changelist, d.Version), id),
			c.noteNext(ctx, db, []store.OutboxEntry{d}))
	})
	return cmd
}

// adviseConflict adds the hint for a delivery whose status does not allow the
// decision.
func adviseConflict(err error, d store.OutboxEntry, settle time.Duration) error {
	switch {
	case failure.ClassOf(err) != failure.WriteConflict:
		return err
	case d.Forgotten:
		return advise(err, "to make a new review: criticizer-starter change-commit --review-version %d %d", d.Version+1, d.Changelist)
	case d.Status == review.DeliverySent:
		return advise(err, "a sent delivery is not sent again; to make a new review: criticizer-starter change-commit --review-version %d %d", d.Version+1, d.Changelist)
	case d.Begun && d.JobState == review.JobInProgress:
		return advise(err, "wait until the review has ended: it searches for the mail itself")
	case d.Begun && time.Since(*d.LastAttemptAt) < settle:
		return advise(err, "its last attempt may take until %s (mail.settle): search for the mail after that, then decide", operator.Stamp(d.LastAttemptAt.Add(settle)))
	case d.Begun || d.NotificationID != "":
		return advise(err, `find out from the mail server whether it was accepted; if not: criticizer delivery resend %d --reason "WHY"; if it was: criticizer delivery waive %[1]d --reason "WHY"`, d.ID)
	case d.Status == review.DeliveryPending:
		return advise(err, "it is sent when the review continues; to see the review: criticizer status %d", d.Changelist)
	}
	return advise(err, "to see its history: criticizer delivery show %d", d.ID)
}

// noteNext prints how the reviews of deliveries continue. It names the dead letters whose replay
// is not refused.
func (c *app) noteNext(ctx context.Context, db *store.DB, deliveries []store.OutboxEntry) error {
	letters, err := db.DeadLetters(ctx, store.DeadLetterFilter{States: unresolved})
	if err != nil {
		return err
	}
	states, ids := map[review.JobState]bool{}, []string{}
	for _, d := range deliveries {
		states[d.JobState] = true
	}
	for _, l := range letters {
		if !slices.ContainsFunc(deliveries, func(d store.OutboxEntry) bool { return d.WorkflowID == l.WorkflowID }) {
			continue
		}
		err := replayer{db: db}.refuses(ctx, l)
		if _, refused := errors.AsType[settledError](err); err != nil && !refused {
			return err
		}
		if err == nil {
			ids = append(ids, strconv.FormatInt(l.ID, 10))
		}
	}
	if len(ids) > 0 {
		c.note(`to continue the review: criticizer deadletter replay %s --reason "WHY"`, strings.Join(ids, " "))
	}
	if states[review.JobSucceeded] {
		c.note("if a review has ended, the next reconciliation sends what is unsent; to run one now: criticizer delivery reconcile")
	}
	if states[review.JobCanceled] {
		c.note("if a review was canceled, nothing is sent")
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), reconcileTimeout)
			defer cancel()
			cfg, err := c.config(settings.RoleOperator)
			if err != nil {
				return err
			}
			temporal, err := dialTemporal(ctx, cfg)
			if err != nil {
				return err
			}
			defer temporal.Close()
			var result activities.Reconciled
			run, _, err := temporal.Trigger(ctx, workflows.ReconciliationSchedule) // or the one that is running
			if err == nil {
				err = temporal.GetWorkflow(ctx, run.WorkflowID, run.FirstExecutionRunID).Get(ctx, &result)
			}
			switch {
			case failure.ClassOf(err) == failure.NotFound:
				return advise(err, "start a worker that serves the stage workflows: it creates the schedule")
			case run.WorkflowID != "" && errors.Is(ctx.Err(), context.Canceled):
				return advise(errContinues, "to see what is unsent: criticizer top")
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				return advise(fmt.Errorf("the reconciliation has not ended after %s", reconcileTimeout),
					"it continues in the background; check that a worker serves the stage notify and that the mail server responds")
			case err != nil:
				return advise(fmt.Errorf("reconcile deliveries: %w", err), "see the run criticizer-reconciliation in the Temporal UI, and the log of the worker")
			}
			return c.print(result, func(w io.Writer) { operator.WriteTable(w, "", reconciledRows(result)) })
		},
	}
}

func reconciledRows(r activities.Reconciled) [][]string {
	rows := [][]string{operator.Row("checked", r.Checked)}
	for _, line := range []struct {
		n    int
		what string
	}{
		{r.Confirmed, "confirmed: sent, and the mail server has a record"},
		{r.Settled, "found to be accepted, and marked sent"},
		{r.Sent, "sent now"},
		{r.Refused, "permanently refused; to list them: criticizer delivery list --status failed"},
		{r.Requeued, "held, found not to be accepted, and released"},
		{r.Unproven, "marked sent without a record at the mail server: see the worker's log"},
		{r.Notices, "authors notified that their change is not reviewed"},
		{r.Missing, "without a record at the mail server, too many at once: nothing was sent again, check the source of evidence"},
		{r.Open, "still open"},
	} {
		if line.n > 0 {
			rows = append(rows, operator.Row(fmt.Sprint("  ", line.n), line.what))
		}
	}
	return rows
}

var deliveryTable = table[store.OutboxEntry]{
	empty:  "no deliveries",
	header: []string{"ID", "CHANGELIST", "RECIPIENT", "STATUS", "TRIES", "REVIEW", "DETAIL"},
	cells: func(d store.OutboxEntry) []any {
		detail := d.ErrorClass
		switch {
		case d.NotifiedAt != nil:
			detail = operator.Stamp(*d.NotifiedAt)
		case d.Begun:
			detail = "the result of the last attempt is unknown"
		}
		return []any{d.ID, versionCell(d.Changelist, d.Version), d.Recipient, d.Status, d.Attempts, d.JobState, detail}
	},
	wide: &table[store.OutboxEntry]{
		header: []string{"MESSAGE-ID", "WORKFLOW"},
		cells:  func(d store.OutboxEntry) []any { return []any{d.NotificationID, d.WorkflowID} },
	},
}
