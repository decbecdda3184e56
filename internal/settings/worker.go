package settings

import (
	"time"

	"github.com/criticizer/criticizer/internal/config"
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
	// Redactions that one worker runs at the same time. They compute: more than the
	// machine's processors only use memory.
	RedactAtOnce int `yaml:"redact_at_once" default:"4" check:"not-negative"`
	// Model stages that one worker runs at the same time. They wait for the model, and
	// hold the change in memory.
	LLMAtOnce int `yaml:"llm_at_once" default:"64" check:"not-negative"`
	// Notify stages that one worker runs at the same time, and posts to each channel.
	NotifyAtOnce int `yaml:"notify_at_once" default:"16" check:"not-negative"`
	// How long a stopping worker waits for its attempts. Then it cancels them, and
	// other workers retry them. Wait 5 seconds longer before you kill a worker.
	StopGrace time.Duration `yaml:"stop_grace" default:"20s" check:"positive"`
	// Address that serves /metrics, /healthz and /readyz, such as 127.0.0.1:9464
	// (docs/observability.md). Each worker on a host needs its own. Empty: none.
	Listen string `yaml:"listen"`
}

// Breaker configures when the circuit breaker of a task queue opens because its
// endpoint fails for all reviews (docs/breaker.md). The results of all workers count.
type Breaker struct {
	// Whether only operators open circuit breakers.
	ByHandOnly bool `yaml:"by_hand_only" default:"false"`
	// Number of the last results that count. Results of more than 5 minutes ago do not.
	Window int `yaml:"window" default:"20" check:"positive"`
	// Share of failures among them that opens the breaker, above 0 and up to 1.
	FailureRatio float64 `yaml:"failure_ratio" default:"0.5" check:"not-negative"`
	// Smallest number of failures that opens the breaker.
	Failures int `yaml:"failures" default:"4" check:"positive"`
	// Smallest number of reviews among them. A review that fails alone is
	// dead-lettered, unless the endpoint does not respond.
	Reviews int `yaml:"reviews" default:"2" check:"positive"`
	// Whether refused credentials and exhausted quota leave the breaker closed.
	// Otherwise they open it when that many reviews failed because of them.
	IgnoreDenied bool `yaml:"ignore_denied" default:"false"`
}

// Check implements the checks of package config.
func (b Breaker) Check(p *config.Problems) {
	p.Add(b.FailureRatio == 0 || b.FailureRatio > 1, "failure_ratio", "is not above 0 and up to 1", "write a share such as 0.5")
}
