package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	temporalNamespace = "criticizer"

	// retention must outlast the time dead letters wait for a replay: a run
	// past its retention cannot be reset.
	retention = 30 * 24 * time.Hour

	temporalPackage = "github.com/temporalio/cli/cmd/temporal"
	// temporalVersion is that of tools/go.mod.
	temporalVersion = "1.5.1"
)

// oldestTemporal is the oldest temporal command that is used from PATH.
var oldestTemporal = [2]int{1, 5}

// searchAttributes are those of design section 3.
var searchAttributes = []string{
	"CriticizerChangelist=Int", "CriticizerReviewVersion=Int",
	"CriticizerStage=Keyword", "CriticizerErrorClass=Keyword", "CriticizerOutcome=Keyword",
	"CriticizerEscalated=Bool",
}

// TemporalConfig says which Temporal a stack wants.
type temporalConfig struct {
	command                string // see temporalCommand
	port, uiPort           int    // see choosePort
	wellKnown, wellKnownUI int
	dbFile                 string // empty: forgets everything when it stops
}

// A temporalServer is one that runs.
type temporalServer struct {
	address string // host:port
	uiURL   string
}

// startTemporal starts a development server with the project's namespace.
func startTemporal(ctx context.Context, s *stack, cfg temporalConfig) (temporalServer, error) {
	port, err := choosePort(cfg.port, cfg.wellKnown, "temporal-port")
	if err != nil {
		return temporalServer{}, err
	}
	uiPort, err := choosePort(cfg.uiPort, cfg.wellKnownUI, "temporal-ui-port")
	if err != nil {
		return temporalServer{}, err
	}
	server := temporalServer{address: localAddress(port), uiURL: "http://" + localAddress(uiPort)}
	proc, err := s.start(program{name: "temporal", path: cfg.command, args: temporalArgs(port, uiPort, cfg.dbFile)})
	if err != nil {
		return temporalServer{}, err
	}
	if err := awaitReady(ctx, proc, 2*time.Minute, server.prepareNamespace); err != nil {
		return temporalServer{}, err
	}
	s.out.say("Temporal on %s, its web page on %s", server.address, server.uiURL)
	return server, nil
}

func temporalArgs(port, uiPort int, dbFile string) []string {
	args := []string{"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--namespace", temporalNamespace, "--log-level", "warn",
		// Timers below a second would fire after a second: the first retry's jitter needs them.
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="50ms"`,
		// New search attributes work at once.
		"--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=true"}
	if dbFile != "" {
		args = append(args, "--db-filename", dbFile)
	}
	for _, attribute := range searchAttributes {
		args = append(args, "--search-attribute", attribute)
	}
	return args
}

// prepareNamespace sets the retention, which start-dev cannot; that it works
// shows that the server is ready.
func (t temporalServer) prepareNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := dialTemporal(ctx, t.address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: temporalNamespace,
		Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	if err != nil {
		return fmt.Errorf("set the retention of namespace %s: %w", temporalNamespace, err)
	}
	return nil
}

func dialTemporal(ctx context.Context, address string) (client.Client, error) {
	c, err := client.DialContext(ctx, client.Options{
		HostPort:  address,
		Namespace: temporalNamespace,
		Logger:    temporallog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal on %s: %w", address, err)
	}
	return c, nil
}

// temporalCommand returns the temporal command: that on PATH if it is new
// enough, else one built from tools/go.mod, which takes minutes the first time.
func temporalCommand(ctx context.Context, opts options, out *progress) (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		text, err := exec.CommandContext(ctx, path, "--version").Output()
		if err == nil && isNewEnough(string(text)) {
			return path, nil
		}
		out.say("not using %s: version %d.%d or later is needed", path, oldestTemporal[0], oldestTemporal[1])
	}
	built := filepath.Join(opts.binDir(), "temporal")
	lock, err := awaitLock(ctx, built+".lock") // one build is enough
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if _, err := os.Stat(built); !errors.Is(err, fs.ErrNotExist) {
		return built, err
	}
	version := "-X github.com/temporalio/cli/temporalcli.Version=" + temporalVersion
	return built, goBuild(ctx, out, filepath.Join(opts.root, "tools"), temporalPackage, built, "-ldflags", version)
}

var temporalVersionText = regexp.MustCompile(`temporal version (\d+)\.(\d+)`)

// isNewEnough reads what temporal --version prints. A build without a version
// calls itself 0.0.0.
func isNewEnough(text string) bool {
	m := temporalVersionText.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if errMajor != nil || errMinor != nil {
		return false
	}
	return major > oldestTemporal[0] || major == oldestTemporal[0] && minor >= oldestTemporal[1]
}
