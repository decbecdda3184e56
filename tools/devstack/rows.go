package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
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

	earlier bool   // it was reviewed by an earlier run
	failure string // the class of the error, if it failed
}

// failedReviews means that the stack works but some reviews failed.
type failedReviews struct {
	failed, all int
	log         string
}

func (e failedReviews) Error() string {
	return fmt.Sprintf("%d of %d reviews failed: see their classes in the table, and %s", e.failed, e.all, e.log)
}

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
	return failedReviews{failed: n, all: len(rows), log: log}
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

// writeTable writes one line for each review and one for each further recipient.
func writeTable(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nCHANGELIST\tOUTCOME\tFINDINGS\tSECONDS\tRECIPIENT\tMAIL ID\t\n")
	earlier := 0
	for _, r := range rows {
		outcome, note := r.Outcome, ""
		if r.failure != "" {
			outcome += " (" + r.failure + ")"
		}
		if r.earlier {
			earlier++
			note = "reviewed earlier"
		}
		recipient, mailID := "none", "-"
		if len(r.Recipients) > 0 {
			recipient, mailID = r.Recipients[0], orDash(r.MessageIDs[0])
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%.1f\t%s\t%s\t%s\n", r.Changelist, outcome, r.Findings, r.Seconds, recipient, mailID, note)
		for i := 1; i < len(r.Recipients); i++ {
			fmt.Fprintf(table, "\t\t\t\t%s\t%s\t\n", r.Recipients[i], orDash(r.MessageIDs[i]))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%d reviewed now, %d by an earlier run\n", len(rows)-earlier, earlier)
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
