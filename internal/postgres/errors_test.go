package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
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
		"08P01": failure.ConfigInvalid,
		"42P05": failure.ConfigInvalid,
		"26000": failure.ConfigInvalid,
		"3F000": failure.ConfigInvalid,
		"57014": failure.NetworkTimeout,
		"22021": failure.InputInvalid,
		"42601": failure.Unknown,
		"":      failure.Unknown,
	} {
		err := Interpret("read job", fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Message: "m"}))
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
		if got := failure.ClassOf(Interpret("read job", tc.err)); got != tc.want {
			t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestInterpretKeepsCancellation(t *testing.T) {
	t.Parallel()
	if err := Interpret("read job", fmt.Errorf("timeout: %w", context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := Interpret("read job", nil); err != nil {
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
		if got := Interpret("read job", tc.err).Error(); got != "read job: "+tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

// A hanging server accepts connections, because its kernel does, and never answers.
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	url := "postgres://u@" + silent.Addr().String() + "/d"
	cfg, err := poolConfig(Config{URL: secret.New(url)}, "")
	if err != nil || cfg.ConnConfig.ConnectTimeout != 10*time.Second {
		t.Errorf("the limit is %s, %v", cfg.ConnConfig.ConnectTimeout, err)
	}
	_, err = Open(t.Context(), Config{URL: secret.New(url + "?connect_timeout=1")}, "")
	if failure.ClassOf(err) != failure.NetworkTimeout {
		t.Errorf("with a limit of 1 s: %v", err)
	}
}
