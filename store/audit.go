package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
)

// An AuditEntry is one line of the audit log.
type AuditEntry struct {
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"`
	Login  string          `json:"login"` // set by the database
	Action string          `json:"action"`
	Detail json.RawMessage `json:"detail"`
}

// trail returns the audit log of an object, oldest first.
func (d *DB) trail(ctx context.Context, object string) ([]AuditEntry, error) {
	rows, err := d.q.AuditOf(ctx, object)
	return convert("read audit log", rows, err, func(r db.AuditOfRow) AuditEntry { return AuditEntry(r) })
}

// audit appends an action on an object to the log; an empty who is the login.
func audit(ctx context.Context, q *db.Queries, object, who, action string, detail map[string]any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	return q.AppendAudit(ctx, db.AppendAuditParams{Actor: who, Action: action, Object: object, Detail: encoded})
}
