package store

import (
	"context"
	"time"
)

// OldestPostgres is the oldest major version of Postgres that will do.
const OldestPostgres = 15

// A Server is what the database server says of itself and of the login.
type Server struct {
	// MajorVersion of Postgres.
	MajorVersion int
	// Clock is the server's time when it was asked.
	Clock time.Time
	// Superuser is set for a login that no role holds back.
	Superuser bool
}

// Server asks the database server about itself.
func (d *DB) Server(ctx context.Context) (Server, error) {
	row, err := d.q.ServerState(ctx)
	return Server{MajorVersion: int(row.MajorVersion), Clock: row.Clock, Superuser: row.Superuser}, interpret("ask the database server about itself", err)
}
