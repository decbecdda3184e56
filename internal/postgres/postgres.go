// Package postgres opens databases, gives errors of the driver their class, and applies the
// migrations of a schema. The stores of the reviewer and of the rewrite queue, each with its
// own [Schema], are built on it.
//
// Read this file first, then schema.go and errors.go.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// Config says where the database is.
type Config struct {
	// Postgres URL with the database role of this process; each stage has its own
	// role. The whole URL is a secret because it contains the password.
	URL secret.Value `yaml:"url" required:"a Postgres URL"`
	// ClearText permits connections to other hosts without TLS.
	ClearText bool
}

// Grant returns the statement that gives the login of the URL a role.
func (c Config) Grant(role string) string {
	login := "LOGIN"
	if cfg, err := c.parse(); err == nil {
		login = cfg.ConnConfig.User
	}
	return "grant " + role + " to " + pgx.Identifier{login}.Sanitize()
}

// Open connects to the database as role, or as the login if role is empty, with TLS unless it
// is on this host. The pool has the URL's pool_max_conns connections, by default 4 or one per
// CPU, whichever is more. Each new connection reads user and password from the URL, so that
// these can be rotated; host, database and TLS cannot change.
//
// The role is a start-up parameter of the session, and each new connection checks that it has the
// role. A pooler may be configured to ignore the parameter: the role is then set, unless the
// pooler shares sessions between clients, which would mix roles.
func Open(ctx context.Context, where Config, role string) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(where, role)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err == nil {
		err = errors.Join(assume(ctx, conn, role), conn.Close(ctx))
	}
	var pool *pgxpool.Pool
	if err == nil {
		pool, err = pgxpool.NewWithConfig(ctx, cfg)
	}
	if err != nil {
		err = Interpret("connect to database as "+cmp.Or(role, "the login"), err)
		f, _ := errors.AsType[*failure.Error](err)
		switch class := failure.ClassOf(err); {
		case class == failure.DatabaseUnavailable:
			at := cfg.ConnConfig
			err = fmt.Errorf("%w at %s", err, net.JoinHostPort(at.Host, fmt.Sprint(at.Port)))
		case f != nil && (f.Upstream == "3D000" || f.Upstream == "22023"): // no database or no role
			err = fmt.Errorf("%w: create and migrate the database first", err)
		case class == failure.PermissionDenied:
			err = fmt.Errorf("%w: have an administrator of the database run: %s", err, where.Grant(role))
		}
		return nil, err
	}
	return pool, nil
}

// assume checks that a new connection has role, and sets it if a pooler ignored the start-up
// parameters.
func assume(ctx context.Context, conn *pgx.Conn, role string) error {
	const who = `select current_user::text`
	user, err := ask(ctx, conn, who)
	if err != nil || role == "" || user == role {
		return err
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	// A pooler that shares sessions gives the one that conn had last to the transaction of other.
	const pid = `select pg_backend_pid()::text`
	first, err := ask(ctx, conn, pid)
	if err != nil {
		return err
	}
	if _, err := other.Exec(ctx, "begin", pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	during, err := ask(ctx, other, pid)
	if err != nil {
		return err
	}
	second, err := ask(ctx, conn, pid)
	if err != nil {
		return err
	}
	if during == first || second != first {
		return failure.Errorf(failure.ConfigInvalid, "the pooler shares sessions between clients, which would mix roles: "+poolerAdvice)
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("set role %s; set search_path = ''; set idle_in_transaction_session_timeout = '%s'",
		pgx.Identifier{role}.Sanitize(), idleTimeout), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	if user, err = ask(ctx, conn, who); err == nil && user != role {
		err = failure.Errorf(failure.ConfigInvalid, "the session acts as %s and not as %s", user, role)
	}
	return err
}

// poolerAdvice is what makes a pooler work.
const poolerAdvice = "PgBouncer needs pool_mode = session and ignore_startup_parameters = role,search_path,idle_in_transaction_session_timeout"

// ask returns the only value of a query, which it sends without a prepared statement.
func ask(ctx context.Context, conn *pgx.Conn, query string) (value string, err error) {
	err = conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&value)
	return value, err
}

// A worker that freezes inside a transaction must not keep its locks.
const idleTimeout = "30s"

func poolConfig(where Config, role string) (*pgxpool.Config, error) {
	cfg, err := where.parse()
	if err != nil {
		return nil, err
	}
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], role, "criticizer")
	// Every name in the queries has its schema.
	params["search_path"] = ""
	params["timezone"] = "UTC" // of the times in JSON
	params["idle_in_transaction_session_timeout"] = idleTimeout
	if role != "" {
		params["role"] = role
	}
	// A hanging server accepts connections and never answers.
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, 10*time.Second)
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		fresh, err := where.parse()
		if err == nil {
			c.User, c.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
		}
		return err
	}
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		c.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return assume(ctx, c, role)
	}
	return cfg, nil
}

// Check returns an error of class CONFIG_INVALID unless the database may be opened.
func (c Config) Check() error {
	_, err := c.parse()
	return err
}

// parse drops the parser's error: it may quote the URL, which may contain a password.
func (c Config) parse() (*pgxpool.Config, error) {
	if !c.URL.IsSet() {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is not set")
	}
	cfg, err := pgxpool.ParseConfig(c.URL.Reveal())
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "open database: its URL is malformed: want postgres://user@host:port/database")
	}
	if host := clearTextHost(cfg.ConnConfig.Config); host != "" && !c.ClearText {
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

// OrZero is the value of a nullable column, zero for null.
func OrZero[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}

// OrNull is the argument of a nullable parameter, null for the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
