package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedBinaries stand for the Postgres that embedded-postgres downloads.
var embeddedBinaries = pgBinaries{major: versionIn(string(embeddedVersion))}

const embeddedVersion = embeddedpostgres.V17

// embeddedConfig configures a downloaded Postgres for the cluster c of the stack in
// base. The download is in buildDir, for the next run.
func embeddedConfig(c pgCluster, base, buildDir string) embeddedpostgres.Config {
	return embeddedpostgres.DefaultConfig().
		Version(embeddedVersion).
		Port(uint32(c.port)). //nolint:gosec // choosePort returns a port
		Username(pgUser).Password(c.password).
		Encoding("UTF8").Locale("C").
		DataPath(c.data).RuntimePath(embeddedRuntime(base)).CachePath(filepath.Join(buildDir, "postgres")).
		StartParameters(pgParameters).StartTimeout(time.Minute)
}

// embeddedRuntime is where the library unpacks the binaries. They stay there only
// while the server runs.
func embeddedRuntime(base string) string { return filepath.Join(base, "postgres-runtime") }

// startEmbedded downloads Postgres, unless an earlier run has, and starts it as a
// part.
func startEmbedded(ctx context.Context, s *stack, config embeddedpostgres.Config) error {
	log, err := os.Create(filepath.Join(s.base, "log", "postgres.log"))
	if err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	server := embeddedpostgres.NewDatabase(config.Logger(log))
	err = s.out.during("starting a downloaded Postgres, because none is installed", func() error {
		started := make(chan error, 1)
		go func() { started <- server.Start() }() // Start takes no context
		select {
		case err := <-started:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("no usable Postgres is installed, and downloading and starting Postgres %s failed: %w: %s", embeddedVersion, err, howToInstallPostgres())
	}
	s.add(func() {
		if err := server.Stop(); err != nil {
			s.out.say("stop Postgres: %v: see %s", err, log.Name())
		}
		_ = os.RemoveAll(embeddedRuntime(s.base))
	})
	return nil
}

// stopLeftoverEmbedded stops a downloaded Postgres that a killed devstack left
// running: the library has started it as a daemon, without a pid file of ours.
func stopLeftoverEmbedded(ctx context.Context, base string) {
	pgCtl := filepath.Join(embeddedRuntime(base), "bin", "pg_ctl")
	// It fails if no server is running.
	_ = exec.CommandContext(ctx, pgCtl, "stop", "-w", "-m", "fast", "-D", filepath.Join(base, "postgres")).Run()
}
