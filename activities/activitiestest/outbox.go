package activitiestest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// SaveRecipients stores the recipients of a version, if those and only those are
// unresolved that have no address.
func (w *World) SaveRecipients(_ context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) (err error) {
	failed := w.call("SaveRecipients", func() {
		for _, r := range rs {
			if (r.Address == "") != (r.Role == review.RoleUnresolved) {
				err = failure.Errorf(failure.InvariantViolated, "save recipients: %s is %s", r.User, r.Role)
				return
			}
		}
		w.known[review.Owner{Changelist: cl, Version: v}] = slices.Clone(rs)
	})
	return cmp.Or(failed, err)
}

// Recipients returns what SaveRecipients stored, the author first.
func (w *World) Recipients(_ context.Context, cl review.Changelist, v review.Version) (rs []review.Recipient, err error) {
	err = w.call("Recipients", func() { rs = slices.Clone(w.known[review.Owner{Changelist: cl, Version: v}]) })
	slices.SortStableFunc(rs, func(a, b review.Recipient) int {
		return rank(a.Role != review.RoleAuthor) - rank(b.Role != review.RoleAuthor)
	})
	return rs, err
}

// rank is the position of what comes first, or of what comes last.
func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// PrepareDeliveries adds missing rows and returns all.
func (w *World) PrepareDeliveries(_ context.Context, cl review.Changelist, v review.Version, addresses []string) (rows []review.Delivery, err error) {
	err = w.call("PrepareDeliveries", func() {
		for _, address := range addresses {
			w.addRow(review.DeliveryKey{Changelist: cl, Recipient: strings.ToLower(address), Version: v})
		}
		rows = slices.Clone(w.rows)
	})
	return rows, err
}

// PrepareChannels adds missing rows of channels.
func (w *World) PrepareChannels(_ context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error {
	return w.call("PrepareChannels", func() {
		for _, c := range channels {
			w.addRow(review.DeliveryKey{Changelist: cl, Recipient: string(c), Version: v})
		}
	})
}

func (w *World) addRow(key review.DeliveryKey) {
	if !slices.ContainsFunc(w.rows, func(d review.Delivery) bool { return d.Key == key }) {
		w.rows = append(w.rows, review.Delivery{ID: int64(len(w.rows) + 1), Key: key, Status: review.DeliveryPending})
	}
}

// Delivery returns one row.
func (w *World) Delivery(_ context.Context, id int64) (row review.Delivery, err error) {
	missing := false
	err = w.call("Delivery", func() {
		if missing = id > int64(len(w.rows)); !missing {
			row = w.rows[id-1]
		}
	})
	if missing {
		err = failure.Errorf(failure.NotFound, "read delivery %d: no such row", id)
	}
	return row, err
}

// BeginDelivery begins an attempt.
func (w *World) BeginDelivery(_ context.Context, seen review.Delivery) (begun review.Delivery, err error) {
	now := time.Now()
	changed, err := w.changeRow("BeginDelivery", seen, func(row *review.Delivery) bool {
		if row.Status == review.DeliveryPending {
			row.Attempts, row.LastAttemptAt, row.Begun, row.Refused = row.Attempts+1, &now, true, ""
			begun = *row
		}
		return row.Status == review.DeliveryPending
	})
	if err == nil && !changed {
		err = failure.Errorf(failure.WriteConflict, "begin delivery %d: it changed since it was read", seen.ID)
	}
	return begun, err
}

// AbandonDelivery ends an attempt that was not accepted.
func (w *World) AbandonDelivery(_ context.Context, begun review.Delivery) error {
	_, err := w.changePending("AbandonDelivery", begun, false, func(row *review.Delivery) { row.Begun, row.Refused = false, "" })
	return err
}

// MarkSent ends an attempt that was accepted.
func (w *World) MarkSent(ctx context.Context, id int64, notificationID, _ string) error {
	if ctx.Err() != nil {
		return failure.Errorf(failure.DatabaseUnavailable, "mark sent: %w", ctx.Err())
	}
	twice := false
	err := w.setRow("MarkSent", id, func(row *review.Delivery) {
		now := time.Now()
		if row.NotifiedAt != nil {
			twice = row.NotificationID != notificationID
			return
		}
		row.Status, row.NotificationID, row.NotifiedAt, row.Begun, row.Refused = review.DeliverySent, notificationID, &now, false, ""
	})
	if twice {
		err = failure.Errorf(failure.InvariantViolated, "mark delivery %d sent: it was sent as another message", id)
	}
	return err
}

// MarkDeliveryFailed closes a begun row permanently.
func (w *World) MarkDeliveryFailed(_ context.Context, seen review.Delivery, _ failure.Class) error {
	return w.settle("MarkDeliveryFailed", seen, review.DeliveryFailed, func(row *review.Delivery) {
		row.Status, row.Begun, row.Refused = review.DeliveryFailed, false, ""
	})
}

// HoldDelivery holds a begun row.
func (w *World) HoldDelivery(_ context.Context, seen review.Delivery) error {
	return w.settle("HoldDelivery", seen, review.DeliveryHeld, func(row *review.Delivery) { row.Status = review.DeliveryHeld })
}

// settle changes a row that is as seen, unless it has the wanted status.
func (w *World) settle(op string, seen review.Delivery, want review.DeliveryStatus, change func(*review.Delivery)) error {
	status, err := w.changePending(op, seen, true, change)
	if err == nil && status != want {
		err = failure.Errorf(failure.WriteConflict, "%s %d: it changed since it was read and is %s", op, seen.ID, status)
	}
	return err
}

// RecordRefusal records a refusal.
func (w *World) RecordRefusal(_ context.Context, begun review.Delivery, class failure.Class) error {
	_, err := w.changePending("RecordRefusal", begun, true, func(row *review.Delivery) { row.Refused = string(class) })
	return err
}

// changePending changes a pending row whose last attempt is the one seen, and returns the
// row's status. If mustBegin is set, the attempt must not have ended.
func (w *World) changePending(op string, seen review.Delivery, mustBegin bool, change func(*review.Delivery)) (status review.DeliveryStatus, err error) {
	err = w.setRow(op, seen.ID, func(row *review.Delivery) {
		if row.Status == review.DeliveryPending && row.Attempts == seen.Attempts && (row.Begun || !mustBegin) {
			change(row)
		}
		status = row.Status
	})
	return status, err
}

func (w *World) setRow(op string, id int64, set func(*review.Delivery)) error {
	return w.call(op, func() { set(&w.rows[id-1]) })
}

// Send implements the mail provider. A fault of "Send" means that the message was not
// accepted; one of "Send reply" that it was accepted and the caller gets an error.
func (w *World) Send(ctx context.Context, report review.Report, key review.DeliveryKey, begun time.Time) (id string, err error) {
	failed := w.call("Send", func() {
		switch clean := report.Outcome == review.OutcomeClean; {
		case report.Changelist != key.Changelist, report.Version != key.Version,
			(clean || report.Outcome == review.OutcomeFindings) && clean != (len(report.Findings) == 0):
			err = failure.Errorf(failure.InvariantViolated, "send mail: the report is inconsistent or does not match the key")
		case key.Channel() == review.ChannelMail && !strings.Contains(key.Recipient, "@"):
			err = failure.Errorf(failure.RecipientRejected, "send mail: the address is not valid")
		case ctx.Err() != nil, time.Since(begun) > sendLimit:
			err = failure.Errorf(failure.NetworkTimeout, "send mail: nothing was sent in time")
		default:
			id = messageID(key)
			w.mailed[id] = append(w.mailed[id], key.Recipient)
			w.mails = append(w.mails, report)
		}
	})
	if err = cmp.Or(failed, err); err != nil {
		return "", err
	}
	if w.afterSend != nil {
		w.afterSend()
	}
	if err = w.call("Send reply", nil); err != nil {
		id = ""
	}
	return id, err
}

// sendLimit is the age at which an attempt sends nothing, as that of a mail server.
const sendLimit = 2 * time.Minute

// messageID contains no address.
func messageID(key review.DeliveryKey) string {
	return fmt.Sprintf("message %.16x", sha256.Sum256([]byte(fmt.Sprint(key))))
}

// Lookup returns the evidence of an accepted message, or that of [World.SetEvidence]. The
// search has to begin at the last attempt.
func (w *World) Lookup(_ context.Context, key review.DeliveryKey, since time.Time) (e review.Evidence, err error) {
	e.State = review.EvidenceUnknown
	err = w.call("Lookup", func() {
		if slices.ContainsFunc(w.rows, func(row review.Delivery) bool {
			return row.Key == key && row.LastAttemptAt != nil && !row.LastAttemptAt.Equal(since)
		}) {
			panic(fmt.Sprintf("a message is looked up since %s, which is not its last attempt", since))
		}
		e = w.evidence
		if id := messageID(key); len(w.mailed[id]) > 0 {
			e = review.Evidence{State: review.EvidenceAccepted, NotificationID: id, Source: "fake"}
		}
	})
	return e, err
}
