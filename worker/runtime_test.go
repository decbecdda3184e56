package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
)

// systemd learns that the worker is ready; without systemd nothing is sent.
func TestReadinessIsReportedToSystemd(t *testing.T) {
	t.Parallel()
	if err := reportReady(t.Context(), ""); err != nil {
		t.Errorf("without a socket: %v", err)
	}
	socket := filepath.Join(t.TempDir(), "notify")
	if err := reportReady(t.Context(), socket); err == nil {
		t.Error("a socket that does not exist is no error")
	}
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = systemd.Close() }()
	if err := reportReady(t.Context(), socket); err != nil {
		t.Fatal(err)
	}
	if err := systemd.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 100)
	n, err := systemd.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("systemd read %q, %v", message[:n], err)
	}
}

// The SDK's record of a failed attempt is dropped if the interceptor has logged it,
// and is a warning otherwise. Other records keep their level.
func TestSDKLogsFailedAttemptsOnce(t *testing.T) {
	t.Parallel()
	verdict := temporal.NewApplicationErrorWithOptions("away", "AUTH_DENIED", temporal.ApplicationErrorOptions{NonRetryable: true})
	for name, tt := range map[string]struct {
		message string
		err     error
		of      string
		want    string // level; empty if nothing is logged
	}{
		"an attempt that failed":          {"Activity error.", verdict, "Fetch", ""},
		"one that was canceled":           {"Activity error.", temporal.NewCanceledError(), "Fetch", ""},
		"a probe, which we do not log":    {"Activity error.", verdict, "Probe", "WARN"},
		"an attempt that could not begin": {"Activity error.", errors.New("unable to decode the input"), "Fetch", "WARN"},
		"a panic":                         {"Activity panic.", verdict, "Fetch", "ERROR"},
		"no error":                        {"Activity error.", nil, "Fetch", "WARN"},
	} {
		var out bytes.Buffer
		lg := sdkLogger{log.NewStructuredLogger(slog.New(slog.NewTextHandler(&out, nil)))}
		log.With(lg, "Namespace", "n").Error(tt.message, "ActivityType", tt.of, "Attempt", 1, "Error", tt.err)
		got := out.String()
		if tt.want == "" && got != "" || tt.want != "" && !(strings.Contains(got, "level="+tt.want) && strings.Contains(got, "Namespace=n")) {
			t.Errorf("%s: logged %q, want level %q", name, got, tt.want)
		}
	}
}

// worker.tuner and worker.autoscale_pollers set the SDK's options of each stage's workers.
func TestSlotsOfAWorker(t *testing.T) {
	t.Parallel()
	serve := func(name config.Role, cfg config.Worker) (o worker.Options) {
		s, _ := stageNamed(string(name))
		r := &runtime{cfg: &config.Config{Worker: cfg}, resources: newResources(cfg)}
		if err := r.setSlots(&o, s); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := serve(config.RoleFetch, config.Worker{FetchAtOnce: 3}); o.MaxConcurrentActivityExecutionSize != 3 || o.Tuner != nil ||
		o.ActivityTaskPollerBehavior != nil || o.WorkflowTaskPollerBehavior != nil {
		t.Errorf("by default: %+v", o)
	}
	if o := serve(config.RoleFetch, config.Worker{AutoscalePollers: true}); o.ActivityTaskPollerBehavior == nil || o.WorkflowTaskPollerBehavior == nil {
		t.Errorf("with autoscale_pollers: %+v", o)
	}
	for _, name := range []config.Role{config.RoleFetch, config.RoleWorkflows} {
		o := serve(name, config.Worker{Tuner: config.TunerResource, FetchAtOnce: 3})
		if o.MaxConcurrentActivityExecutionSize != 0 || o.Tuner == nil { // the SDK refuses both
			t.Fatalf("%s with a tuner: %+v", name, o)
		}
		kinds := map[worker.SlotSupplier]bool{}
		for _, s := range []worker.SlotSupplier{
			o.Tuner.GetWorkflowTaskSlotSupplier(), o.Tuner.GetActivityTaskSlotSupplier(), o.Tuner.GetLocalActivitySlotSupplier(), o.Tuner.GetNexusSlotSupplier(),
		} {
			if _, ok := s.(*worker.ResourceBasedSlotSupplier); !ok {
				t.Errorf("%s has a supplier of type %T", name, s)
			}
			kinds[s] = true
		}
		if len(kinds) != 4 {
			t.Errorf("%s: the kinds of tasks share %d suppliers, want 4", name, len(kinds))
		}
	}
}

// The number of attempts at once of a stage is the maximum, however idle the machine is.
func TestResourcesKeepTheMaximum(t *testing.T) {
	t.Parallel()
	options := worker.DefaultResourceControllerOptions()
	options.InfoSupplier = idle{}
	for atOnce, full := range map[int]int{3: 3, 0: 1000} {
		var o worker.Options
		s, _ := stageNamed(string(config.RoleFetch))
		r := &runtime{cfg: &config.Config{Worker: config.Worker{FetchAtOnce: atOnce}}, resources: worker.NewResourceController(options)}
		if err := r.setSlots(&o, s); err != nil {
			t.Fatal(err)
		}
		slots := o.Tuner.GetActivityTaskSlotSupplier()
		if slots.TryReserveSlot(issued{slots: full}) != nil {
			t.Errorf("fetch_at_once %d: another attempt starts beside %d", atOnce, full)
		}
		if slots.TryReserveSlot(issued{slots: full - 1}) == nil {
			t.Errorf("fetch_at_once %d: no attempt starts beside %d", atOnce, full-1)
		}
	}
}

// idle is a machine with free memory and processors.
type idle struct{}

func (idle) MemoryUsage(*worker.SysInfoContext) (float64, error) { return 0.1, nil }
func (idle) CpuUsage(*worker.SysInfoContext) (float64, error)    { return 0.1, nil }

// issued is the state of a supplier: the number of slots in use.
type issued struct {
	worker.SlotReservationInfo
	slots int
}

func (n issued) NumIssuedSlots() int                 { return n.slots }
func (issued) Logger() log.Logger                    { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
func (issued) MetricsHandler() client.MetricsHandler { return client.MetricsNopHandler }

func TestOnlyWorkflowsAreVersioned(t *testing.T) {
	t.Parallel()
	named := config.Worker{Deployment: "criticizer", BuildID: "7"}
	for name, tt := range map[string]struct {
		cfg       config.Worker
		workflows bool
		want      string // build; empty is not versioned
	}{
		"no deployment":    {config.Worker{}, true, ""},
		"activities alone": {named, false, ""},
		"workflows":        {named, true, "7"},
	} {
		got, err := deploymentOf(tt.cfg, tt.workflows)
		if err != nil || got.Version.BuildID != tt.want || got.UseVersioning != (tt.want != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.UseVersioning && got.DefaultVersioningBehavior != workflow.VersioningBehaviorAutoUpgrade {
			t.Errorf("%s: reviews are pinned to the build: %+v", name, got)
		}
	}
	// A test binary records no commit.
	if _, err := deploymentOf(config.Worker{Deployment: "criticizer"}, true); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("without a build: %v", err)
	}
}
