package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/criticizer/criticizer/internal/temporalns"
)

const (
	temporalNamespace = "criticizer"

	// retention is longer than dead letters wait for a replay: a run past its
	// retention cannot be reset.
	retention = 30 * 24 * time.Hour
)

// A temporalServer is a running server.
type temporalServer struct {
	command string
	address string // host:port
	uiURL   string
}

// startTemporal starts a development server with the project's namespace. A port
// that was free can be taken until the server listens: then it starts on another.
func startTemporal(ctx context.Context, s *stack, opts options, command func() (string, error)) (temporalServer, error) {
	path, err := command()
	if err != nil {
		return temporalServer{}, err
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		port, err := opts.choosePort(opts.temporalPort, 7233, "temporal-port")
		if err != nil {
			return temporalServer{}, err
		}
		uiPort, err := opts.choosePort(opts.temporalUIPort, 8233, "temporal-ui-port")
		if err != nil {
			return temporalServer{}, err
		}
		server := temporalServer{command: path, address: localAddress(port), uiURL: "http://" + localAddress(uiPort)}
		proc, err := startProcess(program{name: "temporal", path: path, args: temporalArgs(port, uiPort, filepath.Join(s.base, "temporal.db"))}, s.base)
		if err != nil {
			return temporalServer{}, err
		}
		err = awaitReady(ctx, proc, 2*time.Minute, server.prepareNamespace)
		if err == nil {
			s.keep(proc)
			s.out.say("Temporal on %s, its web page on %s", server.address, server.uiURL)
			return server, nil
		}
		proc.end()
		if attempt == attempts || ctx.Err() != nil {
			return temporalServer{}, err
		}
		s.out.say("starting Temporal again: %v", err)
	}
}

// temporalArgs returns the arguments of the server. The database is a file: the
// one in memory stays broken after a query is canceled, which happens on a busy
// machine. The file need not survive a crash of the machine; without a journal
// file for each write, a third more reviews run in the same time.
func temporalArgs(port, uiPort int, dbFile string) []string {
	return []string{"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--namespace", temporalNamespace, "--log-level", "warn",
		"--db-filename", dbFile, "--sqlite-pragma", "synchronous=off", "--sqlite-pragma", "journal_mode=wal",
		// By default, timers below one second fire after one second. The jitter of the first retry is shorter.
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="50ms"`,
		// People's changes overtake bots' (docs/scaling.md), as on servers from 1.31 on.
		"--dynamic-config-value", "matching.useNewMatcher=true",
		// One process serves a queue: partitions would only forward tasks. The server divides
		// a rate limit by the number of read partitions, so both numbers are equal.
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// The one history shard hands over more than 20 tasks per second (docs/scaling.md).
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=100",
		// New search attributes can be used immediately.
		"--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=true"}
}

// prepareNamespace sets what start-dev cannot: the retention and the search
// attributes. If it succeeds, the server is ready.
func (t temporalServer) prepareNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	n, err := dialTemporal(ctx, t.address)
	if err != nil {
		return err
	}
	defer n.Close()
	_, err = n.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: temporalNamespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	if err != nil {
		return fmt.Errorf("set the retention of namespace %s: %w", temporalNamespace, err)
	}
	return n.RegisterAttributes(ctx)
}

func dialTemporal(ctx context.Context, address string) (temporalns.Namespace, error) {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return temporalns.Dial(ctx, quiet, temporalns.Config{Address: address, Name: temporalNamespace})
}
