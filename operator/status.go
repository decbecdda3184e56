package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (c *console) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status CHANGELIST", Short: "Show everything about one changelist's reviews",
		Long: `Shows every review of a changelist: its job, its current run in Temporal with
stages and attempts, the model that made it and its cost, the findings that were
dropped, the deliveries, the dead letters and their replays.`,
		Example: `  criticizer status 4711
  criticizer status 4711 --json | jq '.[].state'`,
		ValidArgsFunction: c.changelists(),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := parseChangelist(args[0])
			if err != nil {
				return err
			}
			views, err := c.readReviews(cmd.Context(), cl)
			if views == nil {
				return err
			}
			return errors.Join(c.print(views, func(w io.Writer) {
				for i, v := range views {
					if i > 0 {
						fmt.Fprintln(w)
					}
					v.print(w)
				}
			}), err)
		},
	}
}
