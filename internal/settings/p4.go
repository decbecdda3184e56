package settings

import (
	"time"

	"github.com/criticizer/criticizer/p4"
)

// P4 is the access to Perforce, and how much of a change is read.
type P4 struct {
	p4.Config `yaml:",inline"`
	// How often the server is asked for changelists that no trigger announced
	// (docs/trigger.md). 0: never.
	CatchUpEvery time.Duration `yaml:"catch_up_every" default:"10m"`
}
