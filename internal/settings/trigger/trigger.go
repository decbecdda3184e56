// Package trigger is the part of the configuration that the starter reads. It is a package
// of its own so that the starter, which starts for every submit, links no adapter.
package trigger

import (
	"fmt"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/temporal"
)

// Program is where the configuration is. The file also holds the sections of the workers.
var Program = config.Program{Prefix: "CRITICIZER", DefaultPath: "/etc/criticizer/criticizer.yaml", Page: "docs/configuration.md", Shared: true}

// A Config is the configuration of the starter.
type Config struct {
	// Name of the Perforce server in idempotency keys. Do not change it: reviews
	// under another name in the same database are refused.
	ServerID string `yaml:"server_id" default:"p4" required:"the name of the Perforce server"`
	// Sections whose connections to other hosts may be without TLS: p4, database,
	// temporal or llm. Passwords and keys for HTTP servers are refused without TLS in any case.
	AllowClearText []string `yaml:"allow_cleartext" oneof:"p4 database temporal llm"`

	// The connection to Temporal. TLS comes from a profile of the temporal command
	// (docs/temporal.md).
	Temporal temporal.Config `yaml:"temporal"`
	// The spool of a trigger that cannot reach Temporal (docs/trigger.md).
	Starter Spool `yaml:"starter"`
	// The reviews of shelves (docs/trigger.md). The starter reads it.
	Shelf Shelf `yaml:"shelf"`
}

// A Spool keeps reviews that Temporal did not accept.
type Spool struct {
	// Directory of the spooled reviews. Only the account of the trigger needs
	// access to it.
	SpoolDir string `yaml:"spool_dir" default:"/var/lib/criticizer/spool" required:"a directory that only the account of the trigger may enter"`
}

// A Shelf is reviewed once it is quiet.
type Shelf struct {
	// How long a shelf must be unchanged before it is reviewed. A shelf that keeps
	// changing is reviewed after ten times that.
	Quiet time.Duration `yaml:"quiet" default:"1m" check:"positive"`
}

// Load reads and checks the configuration.
func Load(path string, getenv func(string) string) (*Config, error) {
	c := new(Config)
	if err := Program.Read(c, path, getenv); err != nil {
		return nil, err
	}
	c.Temporal.Resolve(getenv)
	p := config.Problems{AllowClearText: c.AllowClearText}
	Program.Check(c, &p)
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("check configuration:\n%w", err)
	}
	return c, nil
}
