package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/store/db"
)

// An AuditEntry is one line of the audit log.
type AuditEntry struct {
	At      time.Time       `json:"at"`
	Actor   string          `json:"actor"`             // login of the session, set by the database
	Role    string          `json:"role"`              // role of the session, set by the database
	Claimed string          `json:"claimed,omitempty"` // the name that the caller gave; nothing verifies it
	Action  string          `json:"action"`
	Detail  json.RawMessage `json:"detail"`
}

// trail returns the audit log of an object, oldest first.
func (d *DB) trail(ctx context.Context, object string) ([]AuditEntry, error) {
	rows, err := d.q.AuditOf(ctx, object)
	return postgres.Convert("read audit log", rows, err, func(r db.AuditOfRow) AuditEntry { return AuditEntry(r) })
}

// changeAudited changes one row, the object, and records that in the log. It records nothing
// if change returns that it has changed no row.
func (d *DB) changeAudited(ctx context.Context, object, claimed, action string, detail map[string]any, change func(*db.Queries) (int64, error)) (changed bool, err error) {
	err = d.inTx(ctx, action+" "+object, func(q *db.Queries) error {
		n, err := change(q)
		if changed = n == 1; err != nil || !changed {
			return err
		}
		return audit(ctx, q, object, claimed, action, detail)
	})
	return changed && err == nil, err
}

// oneOrNone returns the number of rows that a statement changed, from the error of
// reading the row that it returns.
func oneOrNone(err error) (int64, error) {
	if postgres.NoRow(err) {
		return 0, nil
	}
	return 1, err
}

// audit appends an action on an object to the log. claimed is the name of a person who
// shares the login with others, or empty.
func audit(ctx context.Context, q *db.Queries, object, claimed, action string, detail map[string]any) error {
	return q.AppendAudit(ctx, db.AppendAuditParams{Claimed: claimed, Action: action, Object: object, Detail: encoded(detail)})
}
