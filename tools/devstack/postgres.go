package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A pgCluster is a private Postgres cluster of a stack.
type pgCluster struct {
	data     string
	password string
	port     int
	user     *syscall.Credential // nil: the user of devstack
}

// startPostgres returns the URL of a server: the one that CRITICIZER_DATABASE_URL
// names, or a private one, which it starts with the installed Postgres or, if there
// is none, with a downloaded one.
func startPostgres(ctx context.Context, s *stack, opts options) (string, error) {
	if opts.databaseURL != "" {
		s.out.say("using the Postgres that CRITICIZER_DATABASE_URL names")
		return opts.databaseURL, nil
	}
	c, err := newCluster(s, opts)
	if err != nil {
		return "", fmt.Errorf("start Postgres: %w", err)
	}
	version, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read version of the existing cluster: %w", err)
	}
	binaries, err := choosePostgres(installedPostgres(ctx, pgGlobs), versionIn(string(version)), os.Geteuid() == 0)
	if err != nil {
		return "", fmt.Errorf("start Postgres: %w", err)
	}
	if binaries == embeddedBinaries {
		err = startEmbedded(ctx, s, embeddedConfig(c, s.base, opts.buildDir()))
	} else {
		err = c.start(ctx, s, binaries, len(version) == 0)
	}
	if err != nil {
		return "", err
	}
	s.out.say("Postgres %d on %s", binaries.major, localAddress(c.port))
	return c.url(), nil
}

// newCluster chooses port, password and directory of a cluster.
func newCluster(s *stack, opts options) (c pgCluster, err error) {
	c = pgCluster{data: filepath.Join(s.base, "postgres")}
	if c.user, err = unprivilegedUser(); err != nil {
		return c, err
	}
	if c.user != nil {
		c.data = filepath.Join(rootDataDir(s.base), "postgres")
		s.out.say("the data of Postgres is in %s: it runs as another user, who may have no access to %s", c.data, s.base)
	}
	if c.password, err = c.keptPassword(filepath.Join(s.base, "postgres.password")); err != nil {
		return c, err
	}
	c.port, err = opts.choosePort(opts.postgresPort, 5432, "postgres-port")
	return c, err
}

// keptPassword reads the password of an earlier run, or makes one and writes it to path.
func (c pgCluster) keptPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the password of an earlier run: %w", err)
	}
	password := rand.Text()
	// Data without a password belongs to a deleted clone in the same folder.
	return password, errors.Join(os.RemoveAll(c.data), os.WriteFile(path, []byte(password+"\n"), 0o600))
}

// start starts an installed Postgres, and creates the cluster if it is new.
func (c pgCluster) start(ctx context.Context, s *stack, b pgBinaries, create bool) error {
	if create {
		if err := s.out.during("creating a Postgres cluster", func() error { return c.init(ctx, b) }); err != nil {
			return err
		}
	}
	// The process that held it has ended, see openStack. Postgres cannot detect
	// that if another process has its old process ID.
	state := filepath.Join(c.data, "postmaster.pid")
	if err := os.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale postmaster.pid: %w", err)
	}
	args := []string{"-D", c.data, "-p", fmt.Sprint(c.port)}
	for name, value := range pgParameters {
		args = append(args, "-c", name+"="+value)
	}
	proc, err := s.start(program{name: "postgres", path: filepath.Join(b.dir, "postgres"), args: args, dir: c.data, user: c.user})
	if err != nil {
		return err
	}
	// The server's own record of its state, as pg_ctl reads it. The log may be in
	// any language.
	return awaitReady(ctx, proc, time.Minute, func(context.Context) error {
		const statusLine = 7
		text, err := os.ReadFile(state)
		if err != nil {
			return fmt.Errorf("read its state: %w", err)
		}
		if lines := strings.Split(string(text), "\n"); len(lines) <= statusLine || strings.TrimSpace(lines[statusLine]) != "ready" {
			return errors.New("it is starting")
		}
		return nil
	})
}

// pgParameters are the run-time parameters of the server: it listens on loopback
// only, without a socket. The data need not survive a crash of the machine. The
// packages' tests share the server, and have used over 200 connections at a time.
var pgParameters = map[string]string{
	"listen_addresses": loopback, "unix_socket_directories": "", "max_connections": "1000",
	"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
}

// init creates the cluster, with a password for its only user. It creates it
// under another name first, so that an incomplete cluster is never opened.
func (c pgCluster) init(ctx context.Context, b pgBinaries) error {
	incomplete, passwordFile := c.data+".incomplete", c.data+".initial"
	defer func() { _ = os.Remove(passwordFile) }()
	err := errors.Join(
		os.RemoveAll(incomplete),
		os.MkdirAll(filepath.Dir(c.data), 0o711), //nolint:gosec // Postgres may run as another user
		os.Mkdir(incomplete, 0o700),
		os.WriteFile(passwordFile, []byte(c.password+"\n"), 0o600),
	)
	if c.user != nil {
		uid, gid := int(c.user.Uid), int(c.user.Gid)
		err = errors.Join(err, os.Chown(incomplete, uid, gid), os.Chown(passwordFile, uid, gid))
	}
	if err != nil {
		return fmt.Errorf("create Postgres cluster: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, "initdb"), "-D", incomplete, "-U", pgUser, "--pwfile="+passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
	cmd.Dir = incomplete
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	if _, err := run(ctx, cmd); err != nil {
		return fmt.Errorf("create Postgres cluster in %s: %w", incomplete, err)
	}
	return os.Rename(incomplete, c.data)
}

const pgUser = "criticizer" // the only user of a cluster

func (c pgCluster) url() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(pgUser, c.password), Host: localAddress(c.port),
		Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// unprivilegedUser returns the user for Postgres, which refuses to run as root.
// It is nil unless devstack runs as root.
func unprivilegedUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("choose a user for Postgres, which refuses to run as root: this machine has neither postgres nor nobody")
}

// rootDataDir returns the directory for the data of Postgres if devstack runs as
// root. Only root can create it. Its name depends on the state directory base, so
// the next run finds it again.
func rootDataDir(base string) string {
	sum := sha256.Sum256([]byte(base))
	return filepath.Join("/var/lib", "criticizer-"+hex.EncodeToString(sum[:6]))
}
