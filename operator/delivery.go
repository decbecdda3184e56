package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

const deliveryUsage = `usage: criticizer delivery list [-changelist N] [-status STATUS] [-limit N] [-json]
       criticizer delivery show ID [-json]
       criticizer delivery waive ID -reason TEXT
       criticizer delivery readdress ID ADDRESS -reason TEXT
       criticizer delivery resend ID -reason TEXT
       criticizer delivery reconcile [-json]

A delivery is the intent to tell one recipient about one version of a review.
Its status is one of
  pending   not sent, or not known to be sent
  sent      accepted by the mail server
  failed    refused for good: no such mailbox, or a policy
  held      it may have been sent, and nothing tells
  waived    an operator decided that it need not be sent

  list       list the deliveries, those of the newest changelists first
  show       tell what became of one
  waive      let a review finish without this recipient
  readdress  waive a delivery that certainly reached nobody, and make one to
             another address
  resend     say that the mail was not accepted: look for it at the mail server
             first. What was sent is never sent again under the same version
  reconcile  compare the deliveries with the mail server's records now instead of
             at the next scheduled time, and send what is unsent of reviews that
             are over

A review that was dead-lettered goes on when its letter is replayed; then only
what is unsent is sent. docs/recipients.md explains more.

flags:
  -changelist N   of this changelist only
  -status STATUS  of this status only
  -limit N        at most so many (default 1000)
  -reason TEXT    why, and where that is recorded; it goes into the audit log
  -json           print JSON

examples:
  criticizer delivery list -status failed
  criticizer delivery show 7 -json
  criticizer delivery waive 7 -reason "INC-49: has left the company"
  criticizer delivery readdress 7 olga@example.com -reason "INC-50: new address"
  criticizer delivery resend 8 -reason "INC-46: not in the mail log"
  criticizer delivery reconcile

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// delivery implements criticizer delivery.
func delivery(ctx context.Context, args []string, c console) error {
	flags := c.flags("delivery", deliveryUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	actions := map[string]command{
		"list": listDeliveries, "show": showDelivery,
		"waive": waiveDelivery, "readdress": readdressDelivery, "resend": resendDelivery,
		"reconcile": reconcileDeliveries,
	}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return notOne("delivery", flags.Arg(0), "list", "show", "waive", "readdress", "resend", "reconcile")
	}
	return action(ctx, flags.Args()[1:], c)
}

// listDeliveries implements criticizer delivery list.
func listDeliveries(ctx context.Context, args []string, c console) error {
	flags := c.flags("list", deliveryUsage)
	changelist := flags.String("changelist", "", "")
	status := flags.String("status", "", "")
	limit := flags.Int("limit", 1000, "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("list takes flags only: got %q", flags.Arg(0))
	}
	if err := checkLimit(*limit); err != nil {
		return err
	}
	filter, err := deliveryFilter(*changelist, *status)
	if err != nil {
		return err
	}
	filter.Limit = *limit
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := db.FindDeliveries(ctx, filter)
	switch {
	case err != nil:
		return err
	case *asJSON:
		return c.printJSON(found)
	case len(found) == 0:
		fmt.Fprintln(c.stdout, "no deliveries")
		return nil
	}
	table(c.stdout, "", deliveryTable(found))
	if len(found) == *limit {
		fmt.Fprintf(c.stdout, "the newest %d; -limit shows more\n", *limit)
	}
	return nil
}

func deliveryFilter(changelist, status string) (f store.DeliveryFilter, err error) {
	statuses := []review.DeliveryStatus{
		review.DeliveryPending, review.DeliverySent, review.DeliveryFailed, review.DeliveryHeld, review.DeliveryWaived,
	}
	if f.Status = review.DeliveryStatus(status); status != "" && !slices.Contains(statuses, f.Status) {
		return f, badUsage("there is no status %q: want %s", status, oneOf(statuses...))
	}
	if changelist != "" {
		if f.Changelist, err = review.ParseChangelist(changelist); err != nil {
			return f, usageError{err}
		}
	}
	return f, nil
}

func deliveryTable(found []store.OutboxEntry) [][]string {
	rows := [][]string{{"ID", "CHANGELIST", "RECIPIENT", "STATUS", "TRIES", "REVIEW", "DETAIL"}}
	for _, d := range found {
		rows = append(rows, []string{
			fmt.Sprint(d.ID), fmt.Sprintf("%d v%d", d.Changelist, d.Version), printable(d.Recipient), string(d.Status),
			fmt.Sprint(d.Attempts), string(d.JobState), deliveryDetail(d.DeliveryRow),
		})
	}
	return rows
}

func deliveryDetail(d store.DeliveryRow) string {
	switch {
	case d.NotifiedAt != nil:
		return stamp(*d.NotifiedAt)
	case d.Begun:
		return "the last attempt's end is unknown"
	}
	return d.FailureClass
}

// showDelivery implements criticizer delivery show.
func showDelivery(ctx context.Context, args []string, c console) error {
	flags := c.flags("show", deliveryUsage)
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	id, err := deliveryID(flags, rest, 1)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	row, err := findDelivery(ctx, db, id)
	if err != nil {
		return err
	}
	trail, err := db.DeliveryTrail(ctx, id)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(struct {
			store.OutboxEntry
			Key   string             `json:"key"`
			Trail []store.AuditEntry `json:"trail"`
		}{row, keyOf(row).Token(), trail})
	}
	table(c.stdout, "", deliveryStory(row))
	c.printTrail(trail)
	return nil
}

func deliveryStory(d store.OutboxEntry) [][]string {
	rows := [][]string{
		{"delivery", fmt.Sprint(d.ID)},
		{"review", fmt.Sprintf("changelist %d v%d, %s", d.Changelist, d.Version, d.JobState)},
		{"workflow", d.WorkflowID},
		{"recipient", printable(d.Recipient)},
		{"status", string(d.Status)},
		{"attempts", fmt.Sprint(d.Attempts)},
	}
	rows = append(rows, []string{"key", keyOf(d).Token() + ", part of " + carriesKey[keyOf(d).Channel()]})
	if d.LastAttemptAt != nil {
		rows = append(rows, []string{"last attempt", stamp(*d.LastAttemptAt)})
	}
	if d.Begun {
		rows = append(rows, []string{"", "its end is unknown: the mail may have been accepted"})
	}
	if d.NotificationID != "" {
		rows = append(rows, []string{"message", d.NotificationID})
	}
	if d.NotifiedAt != nil {
		rows = append(rows, []string{"sent", sentLine(d.DeliveryRow)})
	}
	if d.ConfirmedAt != nil {
		rows = append(rows, []string{"confirmed", stamp(*d.ConfirmedAt)})
	}
	if d.FailureClass != "" {
		rows = append(rows, []string{"refused", d.FailureClass})
	}
	return rows
}

// sentLine says when it was accepted and, of what was noted, who said so.
func sentLine(d store.DeliveryRow) string {
	if d.Evidence == "" {
		return stamp(*d.NotifiedAt)
	}
	return stamp(*d.NotifiedAt) + ", says " + d.Evidence
}

func keyOf(d store.OutboxEntry) review.DeliveryKey {
	return review.DeliveryKey{Changelist: d.Changelist, Recipient: d.Recipient, Version: d.Version}
}

// carriesKey says what to search for a message that may have been accepted.
var carriesKey = map[review.Channel]string{
	review.ChannelMail:    "its Message-ID and X-Criticizer-Key",
	review.ChannelWebhook: "its Idempotency-Key",
	review.ChannelSwarm:   "the comment's last line",
}

// deliveryID reads the id that comes first of want arguments.
func deliveryID(flags flagSet, rest []string, want int) (int64, error) {
	if len(rest) != want {
		return 0, badUsage("%s wants %s, the first the id of a delivery: got %d", flags.Name(), plural(want, "argument"), len(rest))
	}
	id, err := strconv.ParseInt(rest[0], 10, 64)
	if err != nil || id < 1 {
		return 0, badUsage("%q is not the id of a delivery: want a number, as in the first column of criticizer delivery list", rest[0])
	}
	return id, nil
}

func findDelivery(ctx context.Context, db *store.DB, id int64) (store.OutboxEntry, error) {
	row, err := db.FindDelivery(ctx, id)
	if failure.ClassOf(err) == failure.NotFound {
		return row, advise(err, "criticizer delivery list shows all there are")
	}
	return row, err
}
