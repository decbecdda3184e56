package main

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
)

// rewriteFigures is what stats tells.
type rewriteFigures struct {
	Jobs    []store.RewriteStats `json:"jobs"`
	Batches []rewrite.Submission `json:"open_batches"`
}

func rewriteStats(ctx context.Context, args []string, c console) error {
	asJSON, err := c.onlyJSON("stats", rewriteUsage, args)
	if err != nil {
		return err
	}
	db, _, err := c.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	var figures rewriteFigures
	if figures.Jobs, err = db.Rewrites().Stats(ctx); err != nil {
		return err
	}
	if figures.Batches, err = db.Rewrites().OpenBatches(ctx); err != nil {
		return err
	}
	if asJSON {
		return c.printJSON(figures)
	}
	c.printRewriteFigures(figures)
	return nil
}

func (c console) printRewriteFigures(f rewriteFigures) {
	if len(f.Jobs) == 0 {
		fmt.Fprintln(c.stdout, "no rewrite jobs")
		return
	}
	rows := [][]string{{"STATUS", "MODE", "JOBS", "DEFERRED", "OLDEST"}}
	for _, s := range f.Jobs {
		rows = append(rows, []string{string(s.Status), string(s.Mode), fmt.Sprint(s.Jobs), fmt.Sprint(s.Deferred), age(time.Since(s.Oldest))})
	}
	table(c.stdout, "", rows)
	if len(f.Batches) == 0 {
		fmt.Fprintln(c.stdout, "no open batches")
		return
	}
	rows = [][]string{{"BATCH", "STATE", "AT PROVIDER", "STATUS THERE", "JOBS", "AGE"}}
	for _, b := range f.Batches {
		rows = append(rows, []string{
			b.ID, string(b.State), printable(b.ProviderID), printable(string(b.ProviderStatus)), fmt.Sprint(b.Requests), age(time.Since(b.CreatedAt)),
		})
	}
	table(c.stdout, "", rows)
}
