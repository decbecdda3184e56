package postgres

import (
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// duplicateDatabase is the SQLSTATE of a database that exists already.
const duplicateDatabase = "42P04"

// CreateDatabase creates the database name on the server of server, a postgres://
// URL, unless it exists, and returns its URL. The login must have the right to create
// databases.
func CreateDatabase(ctx context.Context, server secret.Value, name string) (secret.Value, error) {
	cfg, err := poolConfig(Config{URL: server}, "")
	if err != nil {
		return secret.Value{}, err
	}
	u, err := url.Parse(server.Reveal())
	if err != nil || u.Host == "" {
		return secret.Value{}, failure.Errorf(failure.ConfigInvalid, "create database: the server's URL is malformed: want postgres://user@host:port/database")
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return secret.Value{}, Interpret("create database", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == duplicateDatabase {
		err = nil
	}
	u.Path = "/" + name
	return secret.New(u.String()), Interpret("create database "+name, err)
}
