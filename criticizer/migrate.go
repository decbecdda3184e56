package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/store"
)

func (c *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Migrate the database schema to this build's version",
		Long: `Migrates the database schema to this build's version and prints the steps. The
login of CRITICIZER_DATABASE_URL must own the database. The command may be run
again. Stop the workers of another build first (criticizer help upgrade.md).`,
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.config(settings.RoleOperator)
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
			err = store.Schema().Migrate(cmd.Context(), slog.New(slog.NewTextHandler(&steps, plain)), cfg.DatabaseConfig())
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
