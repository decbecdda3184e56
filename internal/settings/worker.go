package settings

import (
	"time"
)

// Worker configures the rate limits of all workers together, and the process of a
// worker.
type Worker struct {
	// Fetches started per second. 0: no limit.
	FetchPerSecond float64 `yaml:"fetch_per_second" default:"0" check:"not-negative"`
	// Model stages started per second. 0: no limit.
	LLMPerSecond float64 `yaml:"llm_per_second" default:"0" check:"not-negative"`
	// Notify stages started per second. 0: no limit.
	NotifyPerSecond float64 `yaml:"notify_per_second" default:"0" check:"not-negative"`
	// Fetches that one worker runs at the same time: each runs p4. 0: the limit of
	// Temporal's SDK, 1000, here and for the other stages.
	FetchAtOnce int `yaml:"fetch_at_once" default:"8" check:"not-negative"`
	// Model stages that one worker runs at the same time. They wait for the model, and
	// hold the change in memory.
	LLMAtOnce int `yaml:"llm_at_once" default:"64" check:"not-negative"`
	// Notify stages that one worker runs at the same time, and posts to each channel.
	NotifyAtOnce int `yaml:"notify_at_once" default:"16" check:"not-negative"`
	// Whether workers run without circuit breakers (docs/runbook.md).
	NoBreaker bool `yaml:"no_breaker" default:"false"`
	// How long a stopping worker waits for its attempts. Then it cancels them, and other
	// workers retry them.
	StopGrace time.Duration `yaml:"stop_grace" default:"20s" check:"positive"`
	// Address that serves /metrics, /healthz and /readyz, such as 127.0.0.1:9464
	// (docs/observability.md). Each worker on a host needs its own. Empty: none.
	Listen string `yaml:"listen"`
}
