package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/criticizer/criticizer/review"
)

// A row is the result of one review. Its tagged fields are those of the starter's answer.
type row struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	WorkflowID string            `json:"workflow_id"`
	RunID      string            `json:"run_id"`
	Duplicate  bool              `json:"duplicate"` // an earlier run has reviewed it

	outcome  string // of the review, or dead_lettered
	findings int
	failure  string // the class of the error, if it failed
	seconds  float64
	// messageIDs has the ID of the mail to each of the recipients, empty if it was
	// not sent.
	recipients, messageIDs []string
}

// errFailedReviews means that the stack works but some reviews failed.
var errFailedReviews = errors.New("reviews failed")

func failuresIn(rows []row, log string) error {
	n := 0
	for _, r := range rows {
		if r.failure != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %w: see their classes in the table, and %s", n, len(rows), errFailedReviews, log)
}

// writeTable writes one line for each review.
func writeTable(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nCHANGELIST\tOUTCOME\tFINDINGS\tSECONDS\tRECIPIENTS\t\n")
	earlier := 0
	for _, r := range rows {
		outcome, note := r.outcome, ""
		if r.failure != "" {
			outcome += " (" + r.failure + ")"
		}
		if r.Duplicate {
			earlier++
			note = "reviewed earlier"
		}
		recipients := cmp.Or(strings.Join(r.recipients, ", "), "none")
		fmt.Fprintf(table, "%d\t%s\t%d\t%.1f\t%s\t%s\n", r.Changelist, outcome, r.findings, r.seconds, recipients, note)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%d reviewed now, %d by an earlier run\n", len(rows)-earlier, earlier)
	return err
}
