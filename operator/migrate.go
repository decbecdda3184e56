package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (c *console) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Migrate the database schema to this build's version",
		Long: `Migrates the database schema to this build's version and prints the steps. The
login of CRITICIZER_DATABASE_URL must own the database. The command may be run
again, or twice at once. Workers keep running, unless the release notes say
otherwise: docs/upgrade.md has the order of an upgrade.`,
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.config(config.RoleOperator)
			if err != nil {
				return err
			}
			var steps strings.Builder
			plain := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			}}
			err = store.Migrate(cmd.Context(), slog.New(slog.NewTextHandler(&steps, plain)), wiring.Database(cfg))
			fmt.Fprint(c.stdout, steps.String())
			if err != nil {
				return advise(err, "check that Postgres is up and that the login of CRITICIZER_DATABASE_URL owns the database")
			}
			if steps.Len() == 0 {
				fmt.Fprintln(c.stdout, "nothing to do: the schema has this build's version")
			}
			return nil
		},
	}
}

func (c *console) keysetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keyset", Short: "Print a new value for CRITICIZER_ARTIFACT_KEYSET",
		Long: `Prints a new value for CRITICIZER_ARTIFACT_KEYSET. It is a secret: redirect it
into a file that only the workers may read, and name that file in
CRITICIZER_ARTIFACT_KEYSET_FILE.`,
		Example:     "  criticizer keyset > /etc/criticizer/secrets/artifact-keyset",
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(*cobra.Command, []string) error {
			keyset, err := artifact.NewKeyset()
			if err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, keyset.Reveal())
			return nil
		},
	}
	cmd.AddCommand(c.evidenceKeyCommand())
	return cmd
}
