package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
)

// classBySQLState maps codes and, for the other codes of a group, the group: the
// first two characters.
var classBySQLState = map[string]failure.Class{
	"08":    failure.DatabaseUnavailable, // connection
	"08P01": failure.ConfigInvalid,       // a pooler that rejects start-up parameters
	"26000": failure.ConfigInvalid,       // no such prepared statement: a pooler shares sessions
	"22":    failure.InputInvalid,        // a value the column cannot hold
	"22023": failure.ConfigInvalid,       // a setting's value, such as a role that is not there
	"23":    failure.InvariantViolated,   // constraints
	"23505": failure.WriteConflict,       // unique
	"25006": failure.DatabaseUnavailable, // read-only: a standby, not yet promoted
	"25P03": failure.DatabaseUnavailable, // idle in transaction for too long
	"28":    failure.AuthDenied,
	"3D000": failure.ConfigInvalid, // no such database
	"3F000": failure.ConfigInvalid, // no such schema
	"40":    failure.WriteConflict, // serialization failure, deadlock
	"42501": failure.PermissionDenied,
	"42P05": failure.ConfigInvalid,       // the prepared statement exists: a pooler shares sessions
	"42883": failure.ConfigInvalid,       // no such function
	"42P01": failure.ConfigInvalid,       // no such table
	"42703": failure.ConfigInvalid,       // no such column
	"53":    failure.DatabaseUnavailable, // out of connections, memory or disk
	"55000": failure.DatabaseUnavailable, // database not accepting connections
	"55P03": failure.WriteConflict,       // lock not available
	"57":    failure.DatabaseUnavailable, // shutdown, crash, starting up
	"57014": failure.NetworkTimeout,      // statement timeout
	"58":    failure.DatabaseUnavailable, // the server's own I/O
	"XX":    failure.UpstreamInternal,
}

// Interpret converts the driver's errors to errors with a class. It passes the
// driver's text on only if the text cannot quote a value: a value may be an address.
// context.Canceled has no class.
func Interpret(op string, err error) error {
	var ours *failure.Error
	var pg *pgconn.PgError
	var scan pgx.ScanArgError
	switch {
	case err == nil, errors.As(err, &ours):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", op, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Errorf(failure.NetworkTimeout, "%s timed out: %w", op, context.DeadlineExceeded)
	case errors.As(err, &pg):
		return &failure.Error{Class: classOf(pg.Code), Err: fmt.Errorf("%s: %s", op, describe(pg)), Upstream: pg.Code}
	case errors.Is(err, pgx.ErrNoRows):
		return failure.Errorf(failure.NotFound, "%s: no such row", op)
	case errors.As(err, &scan):
		return failure.Errorf(failure.InvariantViolated, "%s: column %d of the row is malformed", op, scan.ColumnIndex+1)
	case connectionLost(err):
		return failure.Errorf(failure.DatabaseUnavailable, "%s: Postgres is unreachable or closed the connection", op)
	}
	return failure.Errorf(failure.Unknown, "%s: driver error %T", op, err)
}

// NoRow reports whether a query failed because it selected no row.
func NoRow(err error) bool {
	return errors.Is(err, pgx.ErrNoRows) || failure.ClassOf(err) == failure.NotFound
}

// Missing names the row of a query that selected none.
func Missing(what string, id any, err error) error {
	if NoRow(err) {
		return failure.Errorf(failure.NotFound, "%s %v does not exist", what, id)
	}
	return err
}

func classOf(sqlState string) failure.Class {
	group := sqlState[:min(2, len(sqlState))]
	return cmp.Or(classBySQLState[sqlState], classBySQLState[group], failure.Unknown)
}

// describe returns the message and hint of Postgres, or only names if the message
// could quote a value.
func describe(e *pgconn.PgError) string {
	class := classOf(e.Code)
	switch {
	case slices.Contains([]string{"08P01", "26000", "42P05"}, e.Code):
		return "a connection pooler is in the way (SQLSTATE " + e.Code + "): " + poolerAdvice
	case e.ConstraintName != "":
		return fmt.Sprintf("constraint %s of %s.%s rejected the row", e.ConstraintName, e.SchemaName, e.TableName)
	case class == failure.InputInvalid, class == failure.InvariantViolated, class == failure.Unknown:
		return "Postgres rejected the statement (SQLSTATE " + e.Code + ")"
	}
	message := fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	if e.Hint != "" {
		message += ": " + e.Hint
	}
	return message
}

func connectionLost(err error) bool {
	var connect *pgconn.ConnectError
	_, network := failure.NetworkClass(err)
	return network || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
