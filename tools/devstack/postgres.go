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
	"slices"
	"strings"
	"syscall"
	"time"
)

// pgConfig says which Postgres a stack wants.
type pgConfig struct {
	databaseURL string // a server that runs already; empty: a private cluster
	port        int    // see choosePort
	wellKnown   int
	durable     bool     // keep what is committed through a crash; costs time
	globs       []string // where binaries may be, see findPostgres
	repository  string   // to fetch binaries from, if there are none
	cache       string   // directory to fetch them into
}

// startPostgres starts a private cluster and returns its URL. With a
// databaseURL it starts nothing and returns that.
func startPostgres(ctx context.Context, s *stack, cfg pgConfig) (string, error) {
	if cfg.databaseURL != "" {
		s.out.say("using the Postgres that CRITICIZER_DATABASE_URL names")
		return cfg.databaseURL, nil
	}
	cluster, err := openCluster(ctx, s, cfg)
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
	user     *syscall.Credential
}

// openCluster opens the cluster of the stack, and makes it first if need be.
func openCluster(ctx context.Context, s *stack, cfg pgConfig) (pgCluster, error) {
	as, err := unprivilegedUser()
	if err != nil {
		return pgCluster{}, err
	}
	base := enterableDir(s.dirs.base, as)
	if base != s.dirs.base {
		s.out.say("the data of Postgres is in %s: the user it runs as cannot enter %s", base, s.dirs.base)
		if err := makeDir(base, 0o711, nil); err != nil {
			return pgCluster{}, err
		}
	}
	c := pgCluster{data: filepath.Join(base, "postgres"), user: as}
	made, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pgCluster{}, fmt.Errorf("look for an existing cluster: %w", err)
	}
	if c.binaries, err = postgresFor(ctx, s.out, cfg, c, versionIn(string(made))); err != nil {
		return pgCluster{}, err
	}
	if c.password, err = keptSecret(filepath.Join(s.dirs.base, "postgres.password"), randomText); err != nil {
		return pgCluster{}, err
	}
	if len(made) > 0 {
		// Whoever held it is gone, see openStack; Postgres itself cannot tell
		// when its old process id has been given to another process since.
		if err := os.Remove(filepath.Join(c.data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return pgCluster{}, fmt.Errorf("remove stale postmaster.pid: %w", err)
		}
		return c, nil
	}
	return c, s.out.during("making a Postgres cluster", func() error { return c.init(ctx) })
}

// postgresFor finds binaries for c, whose data was made by version made, or is
// yet to be made when that is 0. It fetches them if there are none.
func postgresFor(ctx context.Context, out *progress, cfg pgConfig, c pgCluster, made int) (pgBinaries, error) {
	cache := enterableDir(cfg.cache, c.user)
	fetched := filepath.Join(cache, "postgres")
	binaries, err := findPostgres(ctx, append(slices.Clone(cfg.globs), filepath.Join(fetched, "bin")), made)
	switch {
	case err == nil:
		return binaries, nil
	case made != 0:
		return pgBinaries{}, fmt.Errorf("the data in %s was made by Postgres %d: install that, or begin anew with make clean: %w", c.data, made, err)
	}
	if cache != cfg.cache {
		if err := makeDir(cache, 0o711, nil); err != nil {
			return pgBinaries{}, err
		}
	}
	return fetchPostgres(ctx, out, cfg.repository, fetched)
}

// init makes the cluster, with a password for its one user. It makes it under
// another name first: half a cluster would be taken for one.
func (c pgCluster) init(ctx context.Context) error {
	making := c.data + ".making"
	if err := os.RemoveAll(making); err != nil {
		return fmt.Errorf("remove half a Postgres cluster: %w", err)
	}
	if err := makeDir(making, 0o700, c.user); err != nil {
		return err
	}
	passwordFile := c.data + ".initial"
	if err := os.WriteFile(passwordFile, []byte(c.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand initdb the password: %w", err)
	}
	defer func() { _ = os.Remove(passwordFile) }()
	if c.user != nil {
		if err := os.Chown(passwordFile, int(c.user.Uid), int(c.user.Gid)); err != nil {
			return fmt.Errorf("hand initdb the password: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, c.binaries.initdb(), "-D", making, "-U", "criticizer", "--pwfile="+passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	cmd.Dir = making
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a Postgres cluster in %s: initdb: %w\n%s", making, err, out)
	}
	if err := os.Rename(making, c.data); err != nil {
		return fmt.Errorf("make a Postgres cluster: %w", err)
	}
	return nil
}

// server is how to run the cluster: on loopback, without a socket.
func (c pgCluster) server(port int, durable bool) program {
	args := []string{"-D", c.data, "-p", fmt.Sprint(port), "-c", "listen_addresses=" + loopback,
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "logging_collector=off"}
	if !durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
	}
	// SIGINT is the fast shutdown: it does not wait for clients.
	return program{name: "postgres", path: c.binaries.postgres(), args: args, dir: c.data, user: c.user, stop: syscall.SIGINT}
}

// ready looks at the server's own record of its state, as pg_ctl does; the log
// may be in any language.
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

// url is how its one user connects.
func (c pgCluster) url(port int) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("criticizer", c.password), Host: localAddress(port),
		Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}
