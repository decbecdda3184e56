package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/criticizer/criticizer/review"
)

// A row is the result of one review. Scripts read its JSON.
type row struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	Outcome    string            `json:"outcome"` // of the review, or dead_lettered
	Findings   int               `json:"findings"`
	// MessageIDs has the ID of the mail to each of the Recipients, empty if it was
	// not sent.
	Recipients []string `json:"recipients"`
	MessageIDs []string `json:"message_ids"`
	WorkflowID string   `json:"workflow_id"`
	RunID      string   `json:"run_id"`
	Seconds    float64  `json:"seconds"`
	Duplicate  bool     `json:"duplicate"` // an earlier run has reviewed it

	failure string // the class of the error, if it failed
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

// writeJSON writes rows to a file for scripts to read.
func writeJSON(path string, rows []row) error {
	rows = slices.Clone(rows)
	for i, r := range rows {
		// A script expects lists, not null, and no meaningless digits.
		rows[i].Recipients, rows[i].MessageIDs = append([]string{}, r.Recipients...), append([]string{}, r.MessageIDs...)
		rows[i].Seconds = math.Round(r.Seconds*1000) / 1000
	}
	text, err := json.MarshalIndent(map[string][]row{"reviews": rows}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the reviews as JSON: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the reviews as JSON: %w", err)
	}
	return nil
}

// writeTable writes one line for each review.
func writeTable(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nCHANGELIST\tOUTCOME\tFINDINGS\tSECONDS\tRECIPIENTS\t\n")
	earlier := 0
	for _, r := range rows {
		outcome, note := r.Outcome, ""
		if r.failure != "" {
			outcome += " (" + r.failure + ")"
		}
		if r.Duplicate {
			earlier++
			note = "reviewed earlier"
		}
		recipients := cmp.Or(strings.Join(r.Recipients, ", "), "none")
		fmt.Fprintf(table, "%d\t%s\t%d\t%.1f\t%s\t%s\n", r.Changelist, outcome, r.Findings, r.Seconds, recipients, note)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%d reviewed now, %d by an earlier run\n", len(rows)-earlier, earlier)
	return err
}
