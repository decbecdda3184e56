package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
)

func TestInterpretGivesTheClass(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]failure.Class{
		"08006": failure.DatabaseUnavailable,
		"57P01": failure.DatabaseUnavailable,
		"57P03": failure.DatabaseUnavailable,
		"53300": failure.DatabaseUnavailable,
		"25006": failure.DatabaseUnavailable,
		"40001": failure.WriteConflict,
		"40P01": failure.WriteConflict,
		"55P03": failure.WriteConflict,
		"23505": failure.WriteConflict,
		"23514": failure.InvariantViolated,
		"23503": failure.InvariantViolated,
		"42501": failure.PermissionDenied,
		"28P01": failure.AuthDenied,
		"28000": failure.AuthDenied,
		"42P01": failure.ConfigInvalid,
		"3D000": failure.ConfigInvalid,
		"3F000": failure.ConfigInvalid,
		"57014": failure.NetworkTimeout,
		"22021": failure.InputInvalid,
		"42601": failure.Unknown,
		"":      failure.Unknown,
	} {
		err := interpret("read job", fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Message: "m"}))
		if got := failure.ClassOf(err); got != want {
			t.Errorf("SQLSTATE %q is %s, want %s", code, got, want)
		}
	}
	for _, tc := range []struct {
		name string
		err  error
		want failure.Class
	}{
		{"a deadline", context.DeadlineExceeded, failure.NetworkTimeout},
		{"no row", pgx.ErrNoRows, failure.NotFound},
		{"a connection cut in mid-answer", io.ErrUnexpectedEOF, failure.DatabaseUnavailable},
		{"a refused connection", &pgconn.ConnectError{}, failure.DatabaseUnavailable},
		{"a malformed column", pgx.ScanArgError{Err: errors.New("x")}, failure.InvariantViolated},
		{"a driver's complaint", errors.New("cannot encode"), failure.Unknown},
		{"an error of ours", failure.Errorf(failure.ArtifactExpired, "gone"), failure.ArtifactExpired},
	} {
		if got := failure.ClassOf(interpret("read job", tc.err)); got != tc.want {
			t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestInterpretKeepsCancellation(t *testing.T) {
	t.Parallel()
	if err := interpret("read job", fmt.Errorf("timeout: %w", context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := interpret("read job", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// An error has what Postgres says, but nothing that may quote a value.
func TestInterpretShowsNoValues(t *testing.T) {
	t.Parallel()
	const address = "alice@corp.test"
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&pgconn.PgError{Code: "23514", Message: "row " + address, Detail: address, ConstraintName: "c", TableName: "t", SchemaName: "s"}, "constraint c of s.t rejected the row"},
		{&pgconn.PgError{Code: "23502", Message: "null value beside " + address}, "Postgres rejected the statement (SQLSTATE 23502)"},
		{&pgconn.PgError{Code: "22P02", Message: "invalid input: " + address, Where: address}, "Postgres rejected the statement (SQLSTATE 22P02)"},
		{&pgconn.PgError{Code: "P0001", Message: address}, "Postgres rejected the statement (SQLSTATE P0001)"},
		{&pgconn.PgError{Code: "42501", Message: "permission denied for table jobs"}, "permission denied for table jobs (SQLSTATE 42501)"},
		{&pgconn.PgError{Code: "53300", Message: "too many clients", Hint: "wait"}, "too many clients (SQLSTATE 53300): wait"},
		{pgx.ScanArgError{ColumnIndex: 2, Err: errors.New(address)}, "column 3 of the row is malformed"},
		{errors.New("unable to encode " + address), "driver error *errors.errorString"},
	} {
		if got := interpret("read job", tc.err).Error(); got != "read job: "+tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}
