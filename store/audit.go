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
	Login  string          `json:"login"` // the database's own word for who it was
	Action string          `json:"action"`
	Detail json.RawMessage `json:"detail"`
}

// trail returns what the audit log says about an object, oldest first.
func (d *DB) trail(ctx context.Context, object string) ([]AuditEntry, error) {
	rows, err := d.q.AuditOf(ctx, object)
	entries := make([]AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = AuditEntry{At: r.At, Actor: r.Actor, Login: r.Login, Action: r.Action, Detail: r.Detail}
	}
	return entries, interpret("read audit log", err)
}

// audit appends to the log what was done to an object; an empty who is the login.
func audit(ctx context.Context, q *db.Queries, object, who, action string, detail map[string]any) error {
	encoded, err := json.Marshal(detail)
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	return q.AppendAudit(ctx, db.AppendAuditParams{Actor: who, Action: action, Object: object, Detail: encoded})
}
