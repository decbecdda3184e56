package main

import (
	"log/slog"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/config"
)

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
