package p4

import (
	"context"
	"fmt"
)

// Ping asks the server for a sign of life, and for its newest changelist, which
// it tells only those whose ticket it accepts. Errors carry the class that a
// fetch would have met.
func (f *ChangeFetcher) Ping(ctx context.Context) error {
	s, err := connect(ctx, f.runner, f.cfg.Charset)
	if err != nil {
		return err
	}
	if _, err := s.stats(ctx, command{name: "changes", flags: []string{"-m", "1"}}); err != nil {
		return fmt.Errorf("ask the p4 server for its newest changelist: %w", err)
	}
	return nil
}
