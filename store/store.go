// Package store persists data that must outlive Temporal's retention: jobs, the
// outbox, dead letters, the audit log and the encrypted artifacts. It needs Postgres
// 15 or newer and is the only user of the driver.
//
// The schema is in store/migrations, and sqlc compiles the queries of store/queries
// into store/db. Invariants are CHECK constraints of the schema. An update states
// the state that it leaves, so that of two writers one changes nothing. The database
// sets all times: the clocks of the hosts may differ.
//
// Read [DB.OpenJob] first, which decides whether a review runs, then deliveries.go
// (the outbox), reconciliation.go, deadletters.go and replays.go. What only operators
// call is in findings.go, deadletter_views.go and delivery_repair.go. The rewrite
// queue is separate: see [Rewrites].
package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/store/db"
)

// A Role is a group role of the database: the rights of one stage (security 9.4.3).
// A login must be a member of the roles it opens.
type Role string

// The roles. The empty role is the login itself.
const (
	RoleFetch       Role = "criticizer_fetch"       // writes raw artifacts and recipients
	RoleRedact      Role = "criticizer_redact"      // reads raw, writes redacted artifacts
	RoleLLM         Role = "criticizer_llm"         // reads redacted, writes report artifacts
	RoleNotify      Role = "criticizer_notify"      // reads reports and recipients, writes the outbox
	RoleBookkeeping Role = "criticizer_bookkeeping" // writes jobs, dead letters and replays
	RoleOperator    Role = "criticizer_operator"    // reads all but contents, repairs states
	RoleRetention   Role = "criticizer_retention"   // deletes expired artifacts and recipients
	RoleReader      Role = "criticizer_reader"      // reads one artifact for a person who gives a reason
	RoleRewrite     Role = "criticizer_rewrite"     // executes rewrite jobs
	RoleBackend     Role = "criticizer_backend"     // enqueues rewrite jobs, reads their states and results
	RoleFrontend    Role = "criticizer_frontend"    // reads the states of rewrite jobs
)

// Config says where the database is.
type Config struct {
	// URL of the database, which contains the password. Required.
	URL secret.Value
	// ClearText permits connections to other hosts without TLS.
	ClearText bool
}

// A DB is a pool of connections that act as one role. Its methods may be called
// concurrently; their errors are [failure.Error]s.
type DB struct {
	lg   *slog.Logger
	pool *pgxpool.Pool
	q    *db.Queries
	role Role
}

// Open connects to the database as role, with TLS unless it is on this host. The pool has the URL's pool_max_conns
// connections, by default 4 or one per CPU, whichever is more. Each new connection
// reads user and password from the URL, so that these can be rotated; host, database and
// TLS cannot change. The role is a start-up parameter of the session: a proxy that shares
// sessions between clients rejects it instead of mixing roles.
func Open(ctx context.Context, lg *slog.Logger, where Config, role Role) (*DB, error) {
	cfg, err := poolConfig(where, role)
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

// advise adds the address of an unreachable database, or what to do about a
// database that rejects the connection.
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

// Close waits until no connection is in use and closes all.
func (d *DB) Close() { d.pool.Close() }

func poolConfig(where Config, role Role) (*pgxpool.Config, error) {
	cfg, err := where.parse()
	if err != nil {
		return nil, err
	}
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], string(role), "criticizer")
	// Every name in the queries has its schema.
	params["search_path"] = ""
	// A worker that freezes inside a transaction must not keep its locks.
	params["idle_in_transaction_session_timeout"] = "30s"
	if role != "" {
		params["role"] = string(role)
	}
	// A hanging server accepts connections and never answers.
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, 10*time.Second)
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { return where.renewLogin(c) }
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		c.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	return cfg, nil
}

// renewLogin sets the present user and password of the URL for a new connection.
func (where Config) renewLogin(c *pgx.ConnConfig) error {
	fresh, err := where.parse()
	if err != nil {
		return err
	}
	c.User, c.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
	return nil
}

// Check returns an error of class CONFIG_INVALID unless the database may be opened.
func (where Config) Check() error {
	_, err := where.parse()
	return err
}

// parse drops the parser's error: it may quote the URL, which may contain a password.
func (where Config) parse() (*pgxpool.Config, error) {
	if !where.URL.IsSet() {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is not set")
	}
	cfg, err := pgxpool.ParseConfig(where.URL.Reveal())
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is malformed: want postgres://user@host:port/database")
	}
	if host := clearTextHost(cfg.ConnConfig.Config); host != "" && !where.ClearText {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: CRITICIZER_DATABASE_URL permits a connection to %s without TLS: "+
			"add sslmode=verify-full to it, or database to allow_cleartext", host)
	}
	return cfg, nil
}

// clearTextHost returns the first other host that the driver may use without TLS, if
// any. With sslmode=prefer, the default, it does so if the server rejects TLS.
func clearTextHost(cfg pgconn.Config) string {
	tries := []*pgconn.FallbackConfig{{Host: cfg.Host, TLSConfig: cfg.TLSConfig}}
	for _, try := range append(tries, cfg.Fallbacks...) {
		ip := net.ParseIP(try.Host)
		local := strings.HasPrefix(try.Host, "/") || try.Host == "localhost" || ip != nil && ip.IsLoopback()
		if try.TLSConfig == nil && !local {
			return try.Host
		}
	}
	return ""
}

// inTx runs fn in one transaction; op names the operation in errors.
func (d *DB) inTx(ctx context.Context, op string, fn func(q *db.Queries) error) error {
	return interpret(op, pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return fn(db.New(tx)) }))
}

// convert returns the rows of a query, which may have failed with err, as values of
// another type.
func convert[Row, T any](op string, rows []Row, err error, as func(Row) T) ([]T, error) {
	if err != nil {
		return nil, interpret(op, err)
	}
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = as(row)
	}
	return values, nil
}

// first returns the first of the values that a query for an ID returned.
func first[T any](values []T, err error, what string, id int64) (value T, _ error) {
	if err == nil && len(values) == 0 {
		err = missing(what, id, pgx.ErrNoRows)
	}
	if err != nil {
		return value, err
	}
	return values[0], nil
}

// encoded returns the JSON form of a value that always has one: a struct or map of texts,
// numbers and times of years with four digits.
func encoded(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return body
}

// noRow reports whether a query failed because it selected no row.
func noRow(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// orZero is the value of a nullable column, zero for null.
func orZero[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}

// orNull is the argument of a nullable parameter, null for the empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
