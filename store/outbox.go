package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// SaveRecipients replaces what is known about who may be told of a version.
func (d *DB) SaveRecipients(ctx context.Context, cl review.Changelist, v review.Version, rs []review.Recipient) error {
	rows := make([]db.InsertRecipientsParams, len(rs))
	for i, r := range rs {
		rows[i] = db.InsertRecipientsParams{
			ChangelistID: cl, ReviewVersion: v, Position: int32(i), UserName: r.User, Address: r.Address, Role: r.Role,
		}
	}
	return d.inTx(ctx, "save recipients", func(q *db.Queries) error {
		if err := q.LockChangelist(ctx, int64(cl)); err != nil {
			return err
		}
		if err := q.DeleteRecipients(ctx, db.DeleteRecipientsParams{ChangelistID: cl, ReviewVersion: v}); err != nil {
			return err
		}
		_, err := q.InsertRecipients(ctx, rows)
		return err
	})
}

// Recipients returns who may be told, in the order saved but the author first.
func (d *DB) Recipients(ctx context.Context, cl review.Changelist, v review.Version) ([]review.Recipient, error) {
	rows, err := d.q.Recipients(ctx, db.RecipientsParams{ChangelistID: cl, ReviewVersion: v})
	rs := make([]review.Recipient, len(rows))
	for i, r := range rows {
		rs[i] = review.Recipient{User: r.UserName, Address: r.Address, Role: r.Role}
	}
	return rs, interpret("read recipients", err)
}

// PrepareDeliveries adds the outbox rows that are missing, one per address
// whatever its case, and returns all of the version, ordered by recipient
// (review-notification 6.3).
func (d *DB) PrepareDeliveries(ctx context.Context, cl review.Changelist, v review.Version, addresses []string) ([]review.Delivery, error) {
	var rows []db.Delivery
	err := d.inTx(ctx, "prepare deliveries", func(q *db.Queries) (err error) {
		if err := q.InsertMissingDeliveries(ctx, db.InsertMissingDeliveriesParams{
			ChangelistID: int64(cl), ReviewVersion: int32(v), Addresses: addresses,
		}); err != nil {
			return err
		}
		rows, err = q.Deliveries(ctx, db.DeliveriesParams{ChangelistID: cl, ReviewVersion: v})
		return err
	})
	deliveries := make([]review.Delivery, len(rows))
	for i, row := range rows {
		deliveries[i] = asDelivery(row)
	}
	return deliveries, err
}

// PrepareChannels adds the outbox rows of channels other than mail that are
// missing.
func (d *DB) PrepareChannels(ctx context.Context, cl review.Changelist, v review.Version, channels []review.Channel) error {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = string(c)
	}
	return interpret("prepare channels", d.q.InsertMissingChannels(ctx, db.InsertMissingChannelsParams{
		ChangelistID: int64(cl), ReviewVersion: int32(v), Channels: names,
	}))
}

// Delivery returns one outbox row.
func (d *DB) Delivery(ctx context.Context, id int64) (review.Delivery, error) {
	row, err := d.q.Delivery(ctx, id)
	return byOurClock(asDelivery(row.Delivery), row.Now), interpret("read delivery", err)
}

// byOurClock moves the time of the last attempt from the database's clock, which
// has just said now, to ours: how long ago an attempt began must not hang on how
// far they are apart.
func byOurClock(row review.Delivery, now time.Time) review.Delivery {
	if row.LastAttemptAt != nil {
		at := row.LastAttemptAt.Add(time.Since(now))
		row.LastAttemptAt = &at
	}
	return row
}

// BeginDelivery records an attempt before anything is sent, so that a crash
// after it is told from no attempt at all. seen is the row the decision to send
// was made on: if it has changed since, another worker is at it and the error
// is of class WRITE_CONFLICT. It returns the row as it is now.
func (d *DB) BeginDelivery(ctx context.Context, seen review.Delivery) (review.Delivery, error) {
	row, err := d.q.BeginDeliveryIfUnchanged(ctx, db.BeginDeliveryIfUnchangedParams{
		ID: seen.ID, Attempts: int32(seen.Attempts),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return review.Delivery{}, failure.Errorf(failure.WriteConflict, "begin delivery %d: it changed since it was read", seen.ID)
	}
	return asDelivery(row), interpret("begin delivery", err)
}

// AbandonDelivery records that the attempt which made the row begun was
// certainly not accepted. It leaves a row alone that another attempt has begun.
func (d *DB) AbandonDelivery(ctx context.Context, begun review.Delivery) error {
	return interpret("abandon delivery", d.q.AbandonDeliveryIfUnchanged(ctx, db.AbandonDeliveryIfUnchangedParams{
		ID: begun.ID, Attempts: int32(begun.Attempts),
	}))
}

// MarkSent records the provider's acceptance in a single write
// (review-notification 6.4.3); evidence names who says so. Marking again with
// the same id changes nothing; with another it is an error of class
// INVARIANT_VIOLATED, for then two messages were accepted.
func (d *DB) MarkSent(ctx context.Context, id int64, notificationID, evidence string) error {
	changed, err := d.q.MarkSentIfNotSent(ctx, db.MarkSentIfNotSentParams{
		ID: id, NotificationID: notificationID, Evidence: evidence,
	})
	if err != nil || changed == 1 {
		return interpret("mark delivery sent", err)
	}
	row, err := d.Delivery(ctx, id)
	if err == nil && row.NotificationID != notificationID {
		return failure.Errorf(failure.InvariantViolated, "mark delivery %d sent: it was sent as another message", id)
	}
	return err
}

// NoteRefusal records that the message of the attempt was refused after the whole
// of it was read. The row stays begun: it is looked up before that is believed.
func (d *DB) NoteRefusal(ctx context.Context, begun review.Delivery, class failure.Class) error {
	return interpret("note refusal", d.q.NoteRefusalIfUnchanged(ctx, db.NoteRefusalIfUnchangedParams{
		ID: begun.ID, Attempts: int32(begun.Attempts), FailureClass: string(class),
	}))
}

// MarkDeliveryFailed records that the recipient refuses for good
// (review-notification 8.1). It leaves a row alone that another attempt has begun;
// the error then has class WRITE_CONFLICT.
func (d *DB) MarkDeliveryFailed(ctx context.Context, seen review.Delivery, class failure.Class) error {
	changed, err := d.q.FailPendingDelivery(ctx, db.FailPendingDeliveryParams{
		ID: seen.ID, Attempts: int32(seen.Attempts), FailureClass: string(class),
	})
	return d.settled(ctx, "fail delivery", seen.ID, review.DeliveryFailed, changed, err)
}

// HoldDelivery keeps the row from being sent until an operator has decided. It
// leaves a row alone that another attempt has begun, as MarkDeliveryFailed.
func (d *DB) HoldDelivery(ctx context.Context, seen review.Delivery) error {
	changed, err := d.q.HoldPendingDelivery(ctx, db.HoldPendingDeliveryParams{ID: seen.ID, Attempts: int32(seen.Attempts)})
	return d.settled(ctx, "hold delivery", seen.ID, review.DeliveryHeld, changed, err)
}

// settled judges a change of a row whose attempt is open: that nothing changed is
// fine only if the row was in the wanted state before.
func (d *DB) settled(ctx context.Context, op string, id int64, want review.DeliveryStatus, changed int64, err error) error {
	if err != nil || changed == 1 {
		return interpret(op, err)
	}
	row, err := d.Delivery(ctx, id)
	if err == nil && row.Status != want {
		return failure.Errorf(failure.WriteConflict, "%s %d: it is %s, and no longer as it was read", op, id, row.Status)
	}
	return err
}

func asDelivery(d db.Delivery) review.Delivery {
	delivery := review.Delivery{
		ID:            d.ID,
		Key:           review.DeliveryKey{Changelist: d.ChangelistID, Recipient: d.Recipient, Version: d.ReviewVersion},
		Status:        d.Status,
		Attempts:      int(d.Attempts),
		LastAttemptAt: d.LastAttemptAt,
		Begun:         d.Begun,
		NotifiedAt:    d.NotifiedAt,
	}
	delivery.NotificationID = text(d.NotificationID)
	if d.Begun {
		delivery.Refused = text(d.FailureClass)
	}
	return delivery
}
