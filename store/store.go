// Package store keeps what must outlive a workflow's history: jobs, the outbox,
// dead letters, the audit log and the encrypted artifacts, in Postgres 15 or
// newer. It is the only user of the driver.
//
// Queries are SQL files compiled by sqlc into store/db; the schema is in
// store/migrations. Invariants are CHECK constraints there, and a change of
// state names the state it leaves, so that a second writer finds nothing to
// change. All times are the database's: hosts need not agree about them.
//
// Start with [DB.OpenJob], the gate of every review, and with the outbox
// (outbox.go). What only operators do is in the files that end in _ops; the queue
// of rewrites, which is apart from the rest, is [Rewrites].
package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store/db"
)

// A Role is a group role of the database: what one stage may touch (security
// 9.4.3). A login must be a member of the roles it opens.
type Role string

// The roles. The empty role is the login itself.
const (
	RoleFetch       Role = "criticizer_fetch"       // writes raw artifacts and recipients
	RoleRedact      Role = "criticizer_redact"      // reads raw, writes redacted artifacts
	RoleLLM         Role = "criticizer_llm"         // reads redacted, writes report artifacts
	RoleNotify      Role = "criticizer_notify"      // reads reports and recipients, keeps the outbox
	RoleBookkeeping Role = "criticizer_bookkeeping" // keeps jobs, dead letters and replays
	RoleOperator    Role = "criticizer_operator"    // sees all but contents, repairs states
	RoleRetention   Role = "criticizer_retention"   // deletes expired artifacts, nothing else
	RoleReader      Role = "criticizer_reader"      // shows one artifact to a person who says why
	RoleRewrite     Role = "criticizer_rewrite"     // works the queue of rewrite jobs
	RoleBackend     Role = "criticizer_backend"     // enqueues rewrite jobs, sees their states and results
	RoleFrontend    Role = "criticizer_frontend"    // sees the states of rewrite jobs
)

// A DB is a pool of connections that act as one role. Its methods may be called
// concurrently; their errors are [failure.Error]s.
type DB struct {
	lg   *slog.Logger
	pool *pgxpool.Pool
	q    *db.Queries
	role Role
}

// Open connects to the database as role. The pool's size is the URL's
// pool_max_conns, or 4 and at least one per CPU. Each new connection asks url for
// user and password, so that these can be rotated; host and database stay. The
// role is a start-up parameter of each session, so a proxy that shares sessions
// between clients refuses it rather than mix up roles.
func Open(ctx context.Context, lg *slog.Logger, url secret.Value, role Role) (*DB, error) {
	cfg, err := poolConfig(url, role)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, interpret("open database", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, advise(cfg.ConnConfig, interpret("connect to database as "+cmp.Or(string(role), "the login"), err))
	}
	lg.DebugContext(ctx, "database opened", "role", string(role), "connections", cfg.MaxConns)
	return &DB{lg: lg, pool: pool, q: db.New(pool), role: role}, nil
}

// advise adds where the database was looked for, or what to do about one that is up
// but will not have us.
func advise(where *pgx.ConnConfig, err error) error {
	switch failure.ClassOf(err) {
	case failure.DatabaseUnavailable:
		return fmt.Errorf("%w at %s", err, net.JoinHostPort(where.Host, fmt.Sprint(where.Port)))
	case failure.ConfigInvalid:
		return fmt.Errorf("%w: create and migrate the database first", err)
	case failure.PermissionDenied:
		return fmt.Errorf("%w: grant the role to the login", err)
	}
	return err
}

// Close waits for connections in use and closes all.
func (d *DB) Close() { d.pool.Close() }

func poolConfig(url secret.Value, role Role) (*pgxpool.Config, error) {
	cfg, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], string(role), "criticizer")
	// Every name in our SQL has its schema; nothing is found by accident.
	params["search_path"] = ""
	// A worker that freezes inside a transaction must not keep its locks.
	params["idle_in_transaction_session_timeout"] = "30s"
	if role != "" {
		params["role"] = string(role)
	}
	// A server that takes the connection and says nothing is away.
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, 10*time.Second)
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { return renewLogin(c, url) }
	return cfg, nil
}

// renewLogin has a new connection sign in as the URL says by now; those that
// stand go on. Where the database is cannot change under a pool.
func renewLogin(c *pgx.ConnConfig, url secret.Value) error {
	fresh, err := parseURL(url)
	if err != nil {
		return err
	}
	c.User, c.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
	return nil
}

// CheckURL refuses what is no URL of a database, with class CONFIG_INVALID.
func CheckURL(url secret.Value) error {
	_, err := parseURL(url)
	return err
}

// parseURL keeps the parser's error to itself: it may quote the URL, and that
// may hold a password.
func parseURL(url secret.Value) (*pgxpool.Config, error) {
	if !url.IsSet() {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is not set")
	}
	cfg, err := pgxpool.ParseConfig(url.Reveal())
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is malformed: want postgres://user@host:port/database")
	}
	return cfg, nil
}

// inTx runs fn in one transaction and interprets every error of it; op says
// what was being done.
func (d *DB) inTx(ctx context.Context, op string, fn func(q *db.Queries) error) error {
	return interpret(op, pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return fn(db.New(tx)) }))
}
