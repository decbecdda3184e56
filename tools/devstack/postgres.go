package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pgConfig describes the Postgres of a stack.
type pgConfig struct {
	databaseURL string // a running server; empty: a private cluster
	port        int    // see choosePort
	wellKnown   int
	durable     bool // keep committed data through a crash; slower
}

// startPostgres starts a private cluster and returns its URL. With a
// databaseURL it starts nothing and returns that.
func startPostgres(ctx context.Context, s *stack, cfg pgConfig) (string, error) {
	if cfg.databaseURL != "" {
		s.out.say("using the Postgres that CRITICIZER_DATABASE_URL names")
		return cfg.databaseURL, nil
	}
	cluster, err := openCluster(ctx, s)
	if err != nil {
		return "", fmt.Errorf("start Postgres: %w", err)
	}
	port, err := choosePort(cfg.port, cfg.wellKnown, "postgres-port")
	if err != nil {
		return "", err
	}
	proc, err := s.start(cluster.server(port, cfg.durable))
	if err != nil {
		return "", err
	}
	if err := awaitReady(ctx, proc, time.Minute, cluster.ready); err != nil {
		return "", err
	}
	s.out.say("Postgres %d on %s", cluster.binaries.major, localAddress(port))
	return cluster.url(port), nil
}

// A pgCluster is a private cluster on disk.
type pgCluster struct {
	binaries pgBinaries
	data     string
	password string
	user     *syscall.Credential // nil: the user of devstack
}

// openCluster opens the cluster of the stack, and creates it if there is none.
func openCluster(ctx context.Context, s *stack) (pgCluster, error) {
	user, err := unprivilegedUser()
	if err != nil {
		return pgCluster{}, err
	}
	base := s.dirs.base
	if user != nil {
		base = outsideDir(base)
		s.out.say("the data of Postgres is in %s: Postgres runs as another user, who may have no access to %s", base, s.dirs.base)
		if err := makeDir(base, 0o711, nil); err != nil {
			return pgCluster{}, err
		}
	}
	c := pgCluster{data: filepath.Join(base, "postgres"), user: user}
	version, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pgCluster{}, fmt.Errorf("read version of the existing cluster: %w", err)
	}
	if c.binaries, err = findPostgres(ctx, pgGlobs, versionIn(string(version))); err != nil {
		return pgCluster{}, fmt.Errorf("%w: %s", err, howToInstallPostgres())
	}
	if c.password, err = keptSecret(filepath.Join(s.dirs.base, "postgres.password"), randomText); err != nil {
		return pgCluster{}, err
	}
	if len(version) == 0 {
		return c, s.out.during("creating a Postgres cluster", func() error { return c.init(ctx) })
	}
	// The process that held it has ended, see openStack. Postgres cannot detect
	// that if another process has its old process ID.
	if err := os.Remove(filepath.Join(c.data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pgCluster{}, fmt.Errorf("remove stale postmaster.pid: %w", err)
	}
	return c, nil
}

// init creates the cluster, with a password for its only user. It creates it
// under another name first, so that an incomplete cluster is never opened.
func (c pgCluster) init(ctx context.Context) error {
	incomplete := c.data + ".incomplete"
	if err := os.RemoveAll(incomplete); err != nil {
		return fmt.Errorf("remove incomplete Postgres cluster: %w", err)
	}
	if err := makeDir(incomplete, 0o700, c.user); err != nil {
		return err
	}
	passwordFile := c.data + ".initial"
	if err := os.WriteFile(passwordFile, []byte(c.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write password for initdb: %w", err)
	}
	defer func() { _ = os.Remove(passwordFile) }()
	if c.user != nil {
		if err := os.Chown(passwordFile, int(c.user.Uid), int(c.user.Gid)); err != nil {
			return fmt.Errorf("write password for initdb: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, c.binaries.initdb(), "-D", incomplete, "-U", "criticizer", "--pwfile="+passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	cmd.Dir = incomplete
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create Postgres cluster in %s: initdb: %w\n%s", incomplete, err, out)
	}
	if err := os.Rename(incomplete, c.data); err != nil {
		return fmt.Errorf("create Postgres cluster: %w", err)
	}
	return nil
}

// server returns the program of the cluster: on loopback, without a socket.
func (c pgCluster) server(port int, durable bool) program {
	args := []string{"-D", c.data, "-p", fmt.Sprint(port), "-c", "listen_addresses=" + loopback,
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "logging_collector=off"}
	if !durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
	}
	// SIGINT is the fast shutdown: it does not wait for clients.
	return program{name: "postgres", path: c.binaries.postgres(), args: args, dir: c.data, user: c.user, stop: syscall.SIGINT}
}

// ready reads the server's own record of its state, as pg_ctl does. The log may
// be in any language.
func (c pgCluster) ready(context.Context) error {
	const statusLine = 7
	data, err := os.ReadFile(filepath.Join(c.data, "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("read its state: %w", err)
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) <= statusLine || strings.TrimSpace(lines[statusLine]) != "ready" {
		return errors.New("it is starting")
	}
	return nil
}

// url returns how the only user connects.
func (c pgCluster) url(port int) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("criticizer", c.password), Host: localAddress(port),
		Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}
