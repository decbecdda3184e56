package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Schema is a schema of a database and the files that make it. The first file creates the
// schema and its table migrations (name, fingerprint, applied_at), which every role that
// opens the database may read.
//
// Goose as a library can write a fingerprint in the transaction of its file, by a Go migration
// per file. It keeps its own table of versions, though, which it creates before the first file
// creates the schema: a second record of what the fingerprints say. To keep the versions in
// our table needs an implementation of its seven-method store, which is longer than the loop
// in [Schema.Migrate].
type Schema struct {
	Name    string
	Files   fs.FS  // *.sql, applied in the order of their names
	Command string // that calls Migrate, for messages
}

// A migration is one file of a schema. The fingerprint is a hash of its content.
type migration struct{ name, sql, fingerprint string }

// Migrate applies the migrations that the database lacks, each in one transaction with
// its fingerprint. It refuses a database with another schema than that of this build or
// an earlier release. Concurrent calls wait for each other. The login must own the
// database, and must have the right to create roles unless an administrator has created
// them.
func (s Schema) Migrate(ctx context.Context, lg *slog.Logger, where Config) error {
	cfg, err := poolConfig(where, "")
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return Interpret("connect to database", err)
	}
	// The lock ends with the session, even if this process is killed.
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtextextended($1, 0))`, "migrations of "+s.Name); err != nil {
		return Interpret("lock schema", err)
	}
	missing, err := s.missing(ctx, conn, conn.Config())
	if err != nil {
		return err
	}
	for _, m := range missing {
		begun := time.Now()
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, m.sql); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, s.on(`insert into %s (name, fingerprint) values ($1, $2)`), m.name, m.fingerprint)
			return err
		})
		if err != nil {
			return Interpret("apply migration "+m.name, err)
		}
		lg.InfoContext(ctx, "migration applied", "name", m.name, "duration_ms", time.Since(begun).Milliseconds())
	}
	_, err = conn.Exec(ctx, revokeTemporary)
	return Interpret("revoke the right to create temporary tables: the login must own the database", err)
}

// revokeTemporary keeps roles from creating tables of their own, to which they could
// attach the schema's functions. It is not a migration: neither a restored nor a copied
// database keeps the rights on the database itself.
const revokeTemporary = `
do $$
begin
    execute format('revoke temporary on database %I from public', current_database());
    if has_database_privilege('public', current_database(), 'temporary') then
        raise insufficient_privilege using message = 'login ' || current_user || ' does not own database ' || current_database();
    end if;
end $$`

// Check returns an error of class CONFIG_INVALID unless the database has the schema of this
// build.
func (s Schema) Check(ctx context.Context, pool *pgxpool.Pool) error {
	missing, err := s.missing(ctx, pool, pool.Config().ConnConfig)
	if err == nil && len(missing) > 0 {
		err = failure.Errorf(failure.ConfigInvalid, "database lacks migration %s of this build: run: %s", missing[0].name, s.Command)
	}
	return err
}

// Fingerprint identifies the content of all files.
func (s Schema) Fingerprint() (string, error) {
	all, err := s.migrations()
	digest := sha256.New()
	for _, m := range all {
		_, _ = fmt.Fprintln(digest, m.name, m.fingerprint)
	}
	return fmt.Sprintf("%x", digest.Sum(nil)), err
}

// A querier is a connection or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// missing returns the migrations of this build that the database lacks. It returns an error
// of class CONFIG_INVALID if the database has others.
func (s Schema) missing(ctx context.Context, q querier, where *pgx.ConnConfig) ([]migration, error) {
	all, err := s.migrations()
	if err != nil {
		return nil, failure.New(failure.InvariantViolated, err)
	}
	rows, err := q.Query(ctx, s.on(`select fingerprint from %s order by name`))
	var applied []string
	if err == nil {
		applied, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	err = Interpret("read migrations", err)
	switch class := failure.ClassOf(err); {
	case class == failure.PermissionDenied && where.RuntimeParams["role"] == "":
		return nil, failure.Errorf(failure.ConfigInvalid, "the login %s may not read the table migrations of database %s: use the login that owns the database, if it is of this build", where.User, where.Database)
	case err != nil && class != failure.ConfigInvalid && class != failure.PermissionDenied: // there is no such table, or it is not that of this build
		return nil, err
	}
	if len(applied) == 0 {
		var exists bool
		if err := q.QueryRow(ctx, `select to_regnamespace($1) is not null`, s.Name).Scan(&exists); err != nil {
			return nil, Interpret("look for the schema", err)
		}
		if exists {
			return nil, s.refuse(&where.Config)
		}
	}
	for i, fingerprint := range applied {
		if i == len(all) || fingerprint != all[i].fingerprint {
			return nil, s.refuse(&where.Config)
		}
	}
	return all[len(applied):], nil
}

// refuse returns the error about a database whose schema is not of this build.
func (s Schema) refuse(where *pgconn.Config) error {
	return failure.Errorf(failure.ConfigInvalid, "database %s has the schema of another build, whose fingerprint this build does not know: deploy that build, "+
		"or give up the data, create the database again and run: %s; "+
		`to drop it: psql --host=%s --port=%d --username=%s --dbname=postgres --command='drop database "%s" with (force)'`,
		where.Database, s.Command, where.Host, where.Port, where.User, where.Database)
}

func (s Schema) migrations() ([]migration, error) {
	names, err := fs.Glob(s.Files, "*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]migration, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(s.Files, name)
		if err != nil {
			return nil, err
		}
		all[i] = migration{name, string(text), fmt.Sprintf("%x", sha256.Sum256(text))}
	}
	return all, nil
}

// on puts the table of the migrations into a statement.
func (s Schema) on(statement string) string {
	return fmt.Sprintf(statement, pgx.Identifier{s.Name, "migrations"}.Sanitize())
}
