package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// SaveRecipients replaces the recipients of a version.
func (d *DB) SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error {
	return d.inTx(ctx, "save recipients", func(q *db.Queries) error {
		if err := q.LockChangelist(ctx, int64(cl)); err != nil {
			return err
		}
		if err := q.DeleteRecipients(ctx, cl, v); err != nil {
			return err
		}
		return q.InsertRecipients(ctx, cl, v, encoded(append([]review.Recipient{}, rs...)))
	})
}

// Recipients returns the recipients of a version, the author first, then in the order
// in which they were saved.
func (d *DB) Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error) {
	rows, err := d.Queries.Recipients(ctx, cl, v)
	return convert(rows, err, func(r db.RecipientsRow) review.Recipient { return review.Recipient(r) })
}

// DecideRecipients stores for each person of a version why the person is not notified, before
// anything is sent. Persons who are not among the excluded are notified.
func (d *DB) DecideRecipients(ctx context.Context, cl review.Changelist, v review.Version, excluded []review.RecipientDecision) error {
	return d.inTx(ctx, "decide recipients", func(q *db.Queries) error {
		if err := q.DecideAllRecipients(ctx, cl, v); err != nil {
			return err
		}
		for _, e := range excluded {
			if err := q.ExcludeRecipient(ctx, db.ExcludeRecipientParams{
				Changelist: cl, Version: v, UserName: e.User, Address: e.Address, Why: e.Why,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// PrepareDeliveries inserts the missing outbox rows, one per address regardless of
// case, and returns all rows of the version by recipient (notification 6.3).
func (d *DB) PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error) {
	var rows []db.Delivery
	err := d.inTx(ctx, "prepare deliveries", func(q *db.Queries) (err error) {
		if err := q.InsertMissingDeliveries(ctx, int64(cl), int(v), addresses); err != nil {
			return err
		}
		rows, err = q.Deliveries(ctx, cl, v)
		return err
	})
	return convert(rows, err, asDelivery)
}

// PrepareChannels inserts the missing outbox rows of channels other than mail.
func (d *DB) PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = string(c)
	}
	return d.InsertMissingChannels(ctx, int64(cl), int(v), names)
}

// Delivery returns one outbox row.
func (d *DB) Delivery(ctx context.Context, id int64) (review.Delivery, error) {
	row, err := d.Queries.Delivery(ctx, id)
	return byOurClock(asDelivery(row.Delivery), row.Now), err
}

// byOurClock converts the time of the last attempt from the database's clock, whose
// present time is now, to this host's clock.
func byOurClock(row review.Delivery, now time.Time) review.Delivery {
	if row.LastAttemptAt != nil {
		at := row.LastAttemptAt.Add(time.Since(now))
		row.LastAttemptAt = &at
	}
	return row
}

// BeginDelivery records an attempt before its message is sent and returns the row as
// it is now. A row that has begun and not ended may have been sent: the process
// crashed. seen is the row on which the decision to send was based. If the row has
// changed, another worker sends it, and the error has class WRITE_CONFLICT.
func (d *DB) BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error) {
	row, err := d.BeginDeliveryIfUnchanged(ctx, seen.ID, seen.Attempts)
	if postgres.NoRow(err) {
		return review.Delivery{}, failure.Errorf(failure.WriteConflict, "begin delivery %d: it changed since it was read", seen.ID)
	}
	return asDelivery(row), err
}

// RecordAttempt records how the attempt that returned begun ended, if that is not known yet.
func (d *DB) RecordAttempt(ctx context.Context, begun review.Delivery, a review.Attempt) error {
	return d.EndAttempt(ctx, db.EndAttemptParams{
		DeliveryID: begun.ID, Attempt: begun.Attempts, Result: a.Result, Answer: a.Answer, Detail: a.Detail,
	})
}

// FirstFailure returns the first attempt of a row that failed, zero if there is none.
func (d *DB) FirstFailure(ctx context.Context, id int64) (review.Attempt, error) {
	attempts, err := d.Attempts(ctx, id)
	for _, a := range attempts {
		if a.Result != "" && a.Result != "accepted" {
			return review.Attempt{Result: a.Result, Answer: a.Answer, Detail: a.Detail}, err
		}
	}
	return review.Attempt{}, err
}

// AbandonDelivery records that the attempt which returned begun was certainly not
// accepted. It changes nothing if another attempt has begun.
func (d *DB) AbandonDelivery(ctx context.Context, begun review.Delivery) error {
	return d.AbandonDeliveryIfUnchanged(ctx, begun.ID, begun.Attempts)
}

// MarkSent records the provider's acceptance in a single write (notification 6.4.3);
// evidence names the source that reported it. Marking again with the same notification
// ID changes nothing. Another ID is an error of class INVARIANT_VIOLATED: two messages
// were accepted.
func (d *DB) MarkSent(ctx context.Context, id int64, notificationID, evidence string) error {
	var changed int64
	err := d.inTx(ctx, "mark delivery sent", func(q *db.Queries) (err error) {
		changed, err = q.MarkSentIfNotSent(ctx, notificationID, evidence, id)
		if err != nil || changed == 0 {
			return err
		}
		return q.AcceptAttempt(ctx, evidence, evidence == review.EvidenceReply, id)
	})
	if err != nil || changed == 1 {
		return err
	}
	row, err := d.Delivery(ctx, id)
	if err == nil && row.NotificationID != notificationID {
		return failure.Errorf(failure.InvariantViolated, "mark delivery %d sent: it was sent as another message", id)
	}
	return err
}

// RecordRefusal records that the provider refused the complete message of the attempt.
// The row stays begun: the evidence sources are queried before the refusal counts.
func (d *DB) RecordRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error {
	return d.RecordRefusalIfUnchanged(ctx, string(class), begun.ID, begun.Attempts)
}

// MarkDeliveryFailed records a permanent refusal of the recipient
// (notification 8.1). If another attempt has begun, it changes nothing and the
// error has class WRITE_CONFLICT.
func (d *DB) MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error {
	changed, err := d.FailPendingDelivery(ctx, db.FailPendingDeliveryParams{
		ID: seen.ID, Attempts: seen.Attempts, ErrorClass: string(class), Bounced: seen.Bounced,
	})
	return d.settled(ctx, "fail delivery", seen.ID, review.DeliveryFailed, changed, err)
}

// HoldDelivery keeps the row from being sent until an operator has decided. Its
// errors are as for [DB.MarkDeliveryFailed].
func (d *DB) HoldDelivery(ctx context.Context, seen review.Delivery) error {
	changed, err := d.HoldPendingDelivery(ctx, seen.ID, seen.Attempts)
	return d.settled(ctx, "hold delivery", seen.ID, review.DeliveryHeld, changed, err)
}

// settled returns an error if an update changed no row, unless the row had the wanted
// status before.
func (d *DB) settled(ctx context.Context, op string, id int64, want review.DeliveryStatus, changed int64, err error) error {
	if err != nil || changed == 1 {
		return err
	}
	row, err := d.Delivery(ctx, id)
	if err == nil && row.Status != want {
		return failure.Errorf(failure.WriteConflict, "%s %d: it changed since it was read and is %s", op, id, row.Status)
	}
	return err
}

func asDelivery(d db.Delivery) review.Delivery {
	delivery := review.Delivery{
		ID:             d.ID,
		Key:            review.DeliveryKey{Changelist: d.Changelist, Recipient: d.Recipient, Version: d.Version},
		Status:         d.Status,
		Attempts:       d.Attempts,
		LastAttemptAt:  d.LastAttemptAt,
		Begun:          d.Begun,
		NotificationID: postgres.OrZero(d.NotificationID),
		NotifiedAt:     d.NotifiedAt,
	}
	if d.Begun {
		delivery.Refused = postgres.OrZero(d.ErrorClass)
	}
	return delivery
}

// reconciler is the actor of reconciliation in the audit log.
const reconciler = "reconciliation"

// DueDeliveries returns at most limit rows for reconciliation, unsent rows and sent ones, those
// sent within watch more often; the longest unchecked first, so that neither kind keeps the other from
// being checked. It leaves out rows that may be in flight, whose last attempt is younger
// than grace, and rows sent less than bounced ago.
func (d *DB) DueDeliveries(ctx context.Context, grace, bounced, watch time.Duration, limit int) ([]review.DueDelivery, error) {
	rows, err := d.Queries.DueDeliveries(ctx, db.DueDeliveriesParams{Grace: grace, Bounced: bounced, Watch: watch, MaxRows: limit})
	return convert(rows, err, func(r db.DueDeliveriesRow) review.DueDelivery {
		return review.DueDelivery{
			Delivery: byOurClock(asDelivery(r.Delivery), r.Now), JobState: r.JobState, Report: postgres.OrZero(r.Report), OnlyNew: r.OnlyNew,
			Confirmed: r.Delivery.ConfirmedAt != nil, Evidence: postgres.OrZero(r.Delivery.Evidence),
		}
	})
}

// RecordCheck records that the evidence sources were queried for a row, and whether
// one has evidence of a mail that was marked sent.
func (d *DB) RecordCheck(ctx context.Context, id int64, confirmed bool) error {
	return d.Queries.RecordCheck(ctx, confirmed, id)
}

// RecordMissing records that a source that would have the mails of sent rows has none. It
// returns how many mails have been missing since a source last had them.
func (d *DB) RecordMissing(ctx context.Context, ids []int64) (missing int, err error) {
	if err = d.Queries.RecordMissing(ctx, ids); err == nil {
		missing, err = d.CountMissing(ctx)
	}
	return missing, err
}

// FailDelivery records a bounce, even of a row that was marked sent
// (notification 8.1). changed is false if the row is not as seen.
func (d *DB) FailDelivery(ctx context.Context, seen review.Delivery, class failure.Class) (changed bool, err error) {
	return d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "fail", map[string]any{"was": seen.Status, "class": class}, func(q *db.Queries) (int64, error) {
		return q.FailDeliveryIfUnchanged(ctx, db.FailDeliveryIfUnchangedParams{
			ID: seen.ID, Status: seen.Status, Attempts: seen.Attempts, ErrorClass: string(class),
			Bounced: class == failure.RecipientRejected && seen.Key.Channel() == review.ChannelMail,
		})
	})
}

// ReleaseDelivery makes a held row pending, because the evidence shows that the mail
// was not accepted. It changes nothing if the row was unproven twice.
func (d *DB) ReleaseDelivery(ctx context.Context, seen review.Delivery) (changed bool, err error) {
	return d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "release", map[string]any{"was": seen.Status}, func(q *db.Queries) (int64, error) {
		return q.ReleaseHeldDelivery(ctx, seen.ID, seen.Attempts)
	})
}

// RequeueUnproven clears the markers of a row that was marked sent and of which no
// source has evidence (notification 8.2, 8.3). The first time the row becomes
// pending and is sent. The second time it is held for an operator, because the
// evidence is probably missing; with hold, the first time too. status is empty if the row is
// not as seen, or was confirmed before.
func (d *DB) RequeueUnproven(ctx context.Context, seen review.Delivery, hold bool) (status review.DeliveryStatus, err error) {
	if seen.NotifiedAt == nil {
		return "", nil
	}
	detail := map[string]any{"was": seen.Status, "message": seen.NotificationID}
	_, err = d.changeAudited(ctx, deliveryObject(seen.ID), reconciler, "requeue", detail, func(q *db.Queries) (_ int64, err error) {
		status, err = q.RequeueUnprovenDelivery(ctx, db.RequeueUnprovenDeliveryParams{
			ID: seen.ID, Attempts: seen.Attempts, NotifiedAt: seen.NotifiedAt, Hold: hold,
		})
		return oneOrNone(err)
	})
	return status, err
}

// BeginNotice begins the notice of a dead letter of stage fetch or llm that is open for the time
// given, and that no replay has taken up. ok is false if there is none.
func (d *DB) BeginNotice(ctx context.Context, openFor time.Duration) (n review.Notice, ok bool, err error) {
	rows, err := d.Queries.BeginNotice(ctx, openFor)
	if err != nil || len(rows) == 0 {
		return n, false, err
	}
	r := rows[0]
	return review.Notice{
		Changelist: review.Changelist(r.Changelist), Version: review.Version(r.Version), Stage: review.Stage(r.Stage), Class: r.Class,
		FailedAt: r.FailedAt, Begun: r.Begun.Add(time.Since(r.Now)), Again: r.Again,
	}, true, nil
}

// MarkNotice records that an attempt begins, or, if it is not in doubt, that the last attempt
// was certainly not accepted. ok is false if the changelist was forgotten meanwhile.
func (d *DB) MarkNotice(ctx context.Context, n review.Notice, inDoubt bool) (ok bool, err error) {
	marked, err := d.Queries.MarkNotice(ctx, inDoubt, n.Changelist, n.Version)
	return marked == 1, err
}

// PostponeNotice records why a notice is not sent before a later run.
func (d *DB) PostponeNotice(ctx context.Context, n review.Notice, why string) error {
	return d.Queries.PostponeNotice(ctx, why, n.Changelist, n.Version)
}

// EndNotice records that a notice was sent, or, with an empty ID, why it never will be.
func (d *DB) EndNotice(ctx context.Context, n review.Notice, notificationID, why string) error {
	return d.Queries.EndNotice(ctx, db.EndNoticeParams{
		Changelist: n.Changelist, Version: n.Version, NotificationID: postgres.OrNull(notificationID), Why: postgres.OrNull(why),
	})
}
