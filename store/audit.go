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
	return convert("read audit log", rows, err, func(r db.AuditOfRow) AuditEntry { return AuditEntry(r) })
}

// audit appends an action on an object to the log. claimed is the name of a person who
// shares the login with others, or empty.
func audit(ctx context.Context, q *db.Queries, object, claimed, action string, detail map[string]any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	return q.AppendAudit(ctx, db.AppendAuditParams{Claimed: claimed, Action: action, Object: object, Detail: encoded})
}
