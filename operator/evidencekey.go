package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/store"
)

func (c *console) evidenceKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "evidence", Short: "Print a new or rotated value for CRITICIZER_EVIDENCE_KEY",
		Long: `Prints a new value for CRITICIZER_EVIDENCE_KEY, the secret of stage notify that
makes its mails and posts recognizable. With --rotate it prints the present value
with another key, which signs from an hour later on: give it to all workers within
that hour. Old keys identify messages for evidence.key_life; then delete their lines.`,
		Example:     "  criticizer keyset evidence > /etc/criticizer/secrets/evidence-key",
		Annotations: map[string]string{rawOutput: "yes"},
	}
	rotate := cmd.Flags().Bool("rotate", false, "add a key to CRITICIZER_EVIDENCE_KEY")
	cmd.RunE = func(*cobra.Command, []string) error {
		made, err := evidence.Generate()
		if *rotate {
			var old secret.Value
			if old, err = secret.Lookup("CRITICIZER_EVIDENCE_KEY", c.getenv); err != nil {
				return failure.New(failure.ConfigInvalid, err)
			}
			made, err = evidence.Rotate(old)
		}
		if err != nil {
			return advise(err, "set CRITICIZER_EVIDENCE_KEY_FILE to the file of the workers of stage notify")
		}
		fmt.Fprintln(c.stdout, made.Reveal())
		return nil
	}
	return cmd
}

// tokens returns the keys in the message of d, none without CRITICIZER_EVIDENCE_KEY.
func (c *console) tokens(d store.OutboxEntry) []string {
	cfg, err := c.config(config.RoleOperator)
	if err != nil {
		return nil
	}
	keys, err := wiring.EvidenceKeys(cfg)
	if err != nil {
		return nil
	}
	sent := time.Now()
	if d.LastAttemptAt != nil {
		sent = *d.LastAttemptAt
	}
	tokens, _ := keys.Tokens(keyOf(d), sent)
	return tokens
}
