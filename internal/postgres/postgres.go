// Package postgres opens databases, gives errors of the driver their class, and applies the
// migrations of a schema. The stores of the reviewer and of the rewrite queue, each with its
// own [Schema], are built on it.
//
// Read this file first, then schema.go and errors.go.
package postgres

import (
	"cmp"
	"context"
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

// Open connects to the database as role, or as the login if role is empty, with TLS unless it
// is on this host. The pool has the URL's pool_max_conns connections, by default 4 or one per
// CPU, whichever is more. Each new connection reads user and password from the URL, so that
// these can be rotated; host, database and TLS cannot change. The role is a start-up parameter
// of the session: a proxy that shares sessions between clients rejects it instead of mixing
// roles.
func Open(ctx context.Context, where Config, role string) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(where, role)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, Interpret("open database", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		err = Interpret("connect to database as "+cmp.Or(role, "the login"), err)
		switch failure.ClassOf(err) {
		case failure.DatabaseUnavailable:
			at := cfg.ConnConfig
			err = fmt.Errorf("%w at %s", err, net.JoinHostPort(at.Host, fmt.Sprint(at.Port)))
		case failure.ConfigInvalid:
			err = fmt.Errorf("%w: create and migrate the database first", err)
		case failure.PermissionDenied:
			err = fmt.Errorf("%w: grant the role to the login", err)
		}
		return nil, err
	}
	return pool, nil
}

func poolConfig(where Config, role string) (*pgxpool.Config, error) {
	cfg, err := where.parse()
	if err != nil {
		return nil, err
	}
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], role, "criticizer")
	// Every name in the queries has its schema.
	params["search_path"] = ""
	// A worker that freezes inside a transaction must not keep its locks.
	params["idle_in_transaction_session_timeout"] = "30s"
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
	cfg.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		c.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	return cfg, nil
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

// Convert returns the rows of a query, which may have failed with err, as values of
// another type.
func Convert[Row, T any](op string, rows []Row, err error, as func(Row) T) ([]T, error) {
	if err != nil {
		return nil, Interpret(op, err)
	}
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = as(row)
	}
	return values, nil
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
