package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/export"
)

const reviewUsage = `usage: criticizer review list [flags]
       criticizer review show CHANGELIST [flags]

  list  list reviews, the newest first, and why one was skipped, what it died of, or
        how far it has come. It needs Postgres alone; criticizer status
        asks Temporal, too
  show  print the report of a changelist's review, as long as it is kept. That it
        was read, by whom and why, is in the audit log before it is printed. The
        login of CRITICIZER_DATABASE_URL needs the role criticizer_reader, and
        CRITICIZER_ARTIFACT_KEYSET has to be set

flags of list, which each narrow it:
  -state STATE       in_progress, retryable_failed, succeeded, dead_lettered or
                     canceled
  -outcome OUTCOME   clean, findings, partial or not_reviewed
  -since D           begun in the last 30m, 24h
  -limit N           at most so many (default 20)
  -json              print a JSON array

flags of show:
  -review-version N  version of the review (default: the newest that has a report)
  -format F          text (default) or html: what was mailed; json: the whole
                     report; sarif: SARIF 2.1.0; rdjson: for reviewdog
  -json              the same as -format json
  -reason TEXT       why it must be seen (default "criticizer review show")

examples:
  criticizer review list
  criticizer review list -state dead_lettered -since 24h
  criticizer review list -outcome findings -limit 100 -json | jq '.[].changelist'
  criticizer review show 4711
  criticizer review show 4711 -format sarif > 4711.sarif

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// reportFormats write a report, by the value of -format.
var reportFormats = map[string]func(io.Writer, review.Report) error{
	"text":   func(w io.Writer, r review.Report) error { text, _, err := mail.Bodies(r); return write(w, text, err) },
	"html":   func(w io.Writer, r review.Report) error { _, html, err := mail.Bodies(r); return write(w, html, err) },
	"json":   writeReport,
	"sarif":  export.SARIF,
	"rdjson": export.RDJSON,
}

// reviews implements criticizer review.
func reviews(ctx context.Context, args []string, c console) error {
	flags := c.flags("review", reviewUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "list":
		return listReviews(ctx, flags.Args()[1:], c)
	case "show":
		return showReview(ctx, flags.Args()[1:], c)
	}
	return notOne("review", flags.Arg(0), "list", "show")
}

func showReview(ctx context.Context, args []string, c console) error {
	flags := c.flags("show", reviewUsage)
	version := flags.Int("review-version", 0, "")
	format := flags.String("format", "text", "")
	reason := flags.String("reason", "criticizer review show", "")
	asJSON := flags.Bool("json", false, "")
	rest, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return badUsage("show wants one changelist: got %d arguments", len(rest))
	}
	cl, err := review.ParseChangelist(rest[0])
	if err != nil {
		return usageError{err}
	}
	if *version < 0 {
		return badUsage("-review-version %d is negative", *version)
	}
	if *asJSON {
		*format = "json"
	}
	printReport, ok := reportFormats[*format]
	if !ok {
		return badUsage("unknown -format %q: want %s", *format, oneOf(slices.Sorted(maps.Keys(reportFormats))...))
	}
	why, err := statement("reason", *reason)
	if err != nil {
		return err
	}
	report, err := c.reportOf(ctx, cl, review.Version(*version), why)
	if err != nil {
		return err
	}
	return printReport(c.stdout, report)
}

// reportOf reads the report of a review, of the newest version if v is 0.
func (c console) reportOf(ctx context.Context, cl review.Changelist, v review.Version, why string) (review.Report, error) {
	db, _, err := c.database(ctx)
	if err != nil {
		return review.Report{}, err
	}
	defer db.Close()
	ref, err := db.ReportOf(ctx, cl, v)
	if err != nil {
		return review.Report{}, advise(err, "criticizer status %d tells how far its reviews have come", cl)
	}
	body, err := c.readArtifact(ctx, review.NamespaceReport, ref, why)
	if err != nil {
		return review.Report{}, err
	}
	var report review.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return report, fmt.Errorf("read report of changelist %d: %w", cl, err)
	}
	return report, nil
}

func writeReport(w io.Writer, r review.Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func write(w io.Writer, text string, err error) error {
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}
