package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/export"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

func (c *app) reviewCommand() *cobra.Command {
	return group("review", "List reviews, print the report of one, or review again what was left out", "", c.reviewListCommand(), c.reviewShowCommand(), c.reviewRerunCommand())
}

func (c *app) reviewListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List reviews, newest first",
		Long: `Lists reviews, newest first, with the reason why one was skipped or failed, or
what it waits for: its stage, circuit breakers and, of the first 50, the attempts
and queues that Temporal knows.`,
		Example: `  criticizer review list --state retryable_failed --since 24h
  criticizer review list --outcome findings --limit 100 --json | jq '.[].changelist'`,
	}
	filter := store.ReviewFilter{Max: 20}
	wordFlag(cmd, &filter.State, "state", "only in this `STATE`: in_progress, succeeded, retryable_failed or canceled",
		review.JobInProgress, review.JobSucceeded, review.JobRetryableFailed, review.JobCanceled)
	wordFlag(cmd, &filter.Outcome, "outcome", "only with this `OUTCOME`: clean, findings, partial or not_reviewed",
		review.OutcomeClean, review.OutcomeFindings, review.OutcomePartial, review.OutcomeNotReviewed)
	flagOf(cmd, &filter.Since, "since", "only those started within the last `DURATION`", positive)
	return list(c, cmd, &filter.Max, reviewTable, func(ctx context.Context, db *store.DB) ([]listedReview, error) {
		rows, err := db.RecentReviews(ctx, filter)
		outages, errOutages := db.Outages(ctx)
		cfg, errConfig := c.config(settings.RoleOperator)
		if err := errors.Join(err, errOutages, errConfig); err != nil {
			return nil, err
		}
		return withWaits(ctx, cfg, rows, outages), nil
	})
}

// A listedReview is a review of the list, with what it waits for.
type listedReview struct {
	store.RecentReview
	Waits []string `json:"waits,omitempty"`

	view *reviewView // of an unfinished review
}

// withWaits adds what unfinished reviews wait for. If Temporal cannot be asked, only the breakers of
// their stages are known.
func withWaits(ctx context.Context, cfg *settings.Config, rows []store.RecentReview, outages []store.Outage) []listedReview {
	const mostAsked = 50
	listed := make([]listedReview, len(rows))
	var waiting []*reviewView
	for i, r := range rows {
		listed[i].RecentReview = r
		if r.State == review.JobInProgress {
			listed[i].view = &reviewView{ReviewRow: r.ReviewRow, Outages: ofStage(string(r.Stage), outages)}
			waiting = append(waiting, listed[i].view)
		}
	}
	if len(waiting) > 0 {
		temporal, _ := askTemporal(ctx, cfg, waiting[:min(len(waiting), mostAsked)])
		if temporal != nil {
			temporal.Close()
		}
	}
	for i, r := range listed {
		if r.view != nil {
			listed[i].Waits = r.view.waits()
			if !r.view.temporalAsked {
				listed[i].Waits = append(listed[i].Waits, "its attempt and queue are not known")
			}
		}
	}
	return listed
}

// ofStage returns the circuit breakers of a stage.
func ofStage(stage string, outages []store.Outage) []store.Outage {
	return slices.DeleteFunc(slices.Clone(outages), func(o store.Outage) bool { return o.Stage != stage })
}

// reportFormats write a report, by the value of --format.
var reportFormats = map[string]func(io.Writer, review.Report) error{
	"text": func(w io.Writer, r review.Report) error {
		text, _, err := mail.Bodies(r, mail.Config{})
		if err = write(w, text, err); err == nil && len(r.Unread) > 0 {
			fmt.Fprintln(w)
			operator.WriteTable(w, "", unreadTable.rows(r.Unread))
		}
		return err
	},
	"html": func(w io.Writer, r review.Report) error {
		_, html, err := mail.Bodies(r, mail.Config{})
		return write(w, html, err)
	},
	"json":  func(w io.Writer, r review.Report) error { return operator.WriteJSON(w, r) },
	"sarif": export.SARIF,
}

func write(w io.Writer, text string, err error) error {
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func (c *app) reviewShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show CHANGELIST", Short: "Print the report of a review",
		Long: `Prints the report of a changelist's review, as long as it is stored. The audit
log records who read it and why. The login needs the role criticizer_reader, and
CRITICIZER_REPORT_KEYSET must be set.`,
		Example: "  criticizer review show 4711 --format sarif > 4711.sarif",
	}
	as, version := "text", 0
	wordFlag(cmd, &as, "format", "`FORMAT`: text or html (as mailed), json (the whole report) or sarif (SARIF 2.1.0)", "text", "html", "json", "sarif")
	flagOf(cmd, &version, "review-version", "version `N` of the review (default the newest that has a report)", between(1, math.MaxInt32))
	reason := operator.StatementFlag(cmd, "reason", "criticizer review show", "why: `TEXT` for the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cl, err := parseChangelist(args[0])
		if err != nil {
			return err
		}
		if c.json {
			as = "json"
		}
		report, err := c.readReport(cmd.Context(), cl, review.Version(version), *reason)
		if err != nil {
			return err
		}
		return reportFormats[as](c.stdout, report)
	}
	return cmd
}

// readReport reads the report of a review, of the newest version if v is 0.
func (c *app) readReport(ctx context.Context, cl review.Changelist, v review.Version, why string) (review.Report, error) {
	db, cfg, err := c.database(ctx)
	if err != nil {
		return review.Report{}, err
	}
	defer db.Close()
	ref, err := db.ReportOf(ctx, cl, v)
	if err != nil {
		return review.Report{}, advise(err, "to see the state of its reviews: criticizer status %d", cl)
	}
	body, err := c.readArtifact(ctx, review.NamespaceReport, ref, why)
	switch {
	case failure.ClassOf(err) == failure.ArtifactExpired:
		return review.Report{}, advise(fmt.Errorf("report of changelist %d is not stored any more: it has expired, or an operator had it forgotten", cl), "to see which: criticizer why %d", cl)
	case err != nil:
		return review.Report{}, err
	}
	var report review.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return report, fmt.Errorf("read report of changelist %d: %w", cl, err)
	}
	report.Links = cfg.Links.Links
	return report, nil
}

// unreadTable lists the parts that no model could read.
var unreadTable = table[review.Unread]{header: []string{"NOT READ", "LINES", "CLASS", "REASON", "ENDPOINT"}, cells: func(u review.Unread) []any {
	return []any{u.Path, u.Lines, u.Class, u.Why, u.Context}
}}

func (c *app) reviewRerunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rerun CHANGELIST", Short: "Review again what no model could read",
		Long: `Starts the next version of a changelist's review. Parts whose answers are stored
are not asked for again. Recipients and channels get only findings that the version
before lacks; without one, they get nothing. The report of that version must not
have expired. criticizer-starter change-commit --review-version makes a review that
is reported as a whole.`,
		Example: `  criticizer review rerun 4711 --gaps --reason "INC-42: the filter of the endpoint is corrected"`,
	}
	gaps := cmd.Flags().Bool("gaps", false, "review the parts that were left out (required)")
	must(cmd.MarkFlagRequired("gaps"))
	reason := operator.StatementFlag(cmd, "reason", "", "what was changed: `TEXT` for the audit log (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cl, err := parseChangelist(args[0])
		if err != nil {
			return err
		}
		if !*gaps {
			return badUsage("rerun wants --gaps")
		}
		db, cfg, err := c.database(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		last, err := rerunnable(cmd.Context(), db, cl)
		if err != nil {
			return err
		}
		temporal, err := dialTemporal(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer temporal.Close()
		req := review.Request{Changelist: cl, Version: last.Version + 1, ServerID: last.ServerID, OnlyNew: true}
		req.Key = review.DefaultKey(req.ServerID, cl, req.Version)
		if err := db.RecordRerun(cmd.Context(), req, operator.Name(c.getenv), *reason); err != nil {
			return err
		}
		run, err := temporal.ExecuteWorkflow(cmd.Context(), contract.StartOptions(req), contract.ReviewChangelist, req)
		if err != nil {
			return advise(fmt.Errorf("start version %d of the review of changelist %d: %w", req.Version, cl, err), "to see whether it runs already: criticizer status %d", cl)
		}
		return c.print(req, func(w io.Writer) {
			fmt.Fprintf(w, "review of changelist %d version %d started\n  workflow %s run %s\n", cl, req.Version, req.Key, run.GetRunID())
		})
	}
	return cmd
}

// rerunnable returns the newest review of a changelist if it left something out.
func rerunnable(ctx context.Context, db *store.DB, cl review.Changelist) (store.ReviewRow, error) {
	rows, err := db.Reviews(ctx, cl)
	if err != nil {
		return store.ReviewRow{}, err
	}
	status := fmt.Sprintf("to see the state of its reviews: criticizer status %d", cl)
	if len(rows) == 0 {
		return store.ReviewRow{}, advise(fmt.Errorf("changelist %d has no review", cl), "%s", status)
	}
	last := rows[len(rows)-1]
	stored, err := db.ReportIsStored(ctx, cl, last.Version)
	gaps, errGaps := db.Gaps(ctx, cl)
	switch err = errors.Join(err, errGaps); {
	case err != nil:
		return last, err
	case last.Shelved:
		return last, advise(fmt.Errorf("changelist %d is a shelf", cl), "shelve it again, or submit it")
	case last.Forgotten:
		return last, advise(fmt.Errorf("the review of changelist %d is forgotten: the parts that were read are not known", cl),
			"to review the change as a whole: criticizer-starter change-commit --review-version %d %d", last.Version+1, cl)
	case last.State != review.JobSucceeded:
		return last, advise(fmt.Errorf("version %d of the review of changelist %d is %s", last.Version, cl, last.State), "%s", status)
	case last.SkippedBy != "" || last.Outcome != review.OutcomePartial && last.Outcome != review.OutcomeNotReviewed:
		return last, advise(fmt.Errorf("version %d of the review of changelist %d left nothing out: it is %s", last.Version, cl, last.Outcome), "%s", status)
	case !stored:
		return last, advise(fmt.Errorf("the report of version %d of the review of changelist %d has expired: what is new cannot be found", last.Version, cl),
			"to review the change as a whole: criticizer-starter change-commit --review-version %d %d", last.Version+1, cl)
	case len(gaps[last.Version]) == 0:
		return last, advise(fmt.Errorf("version %d of the review of changelist %d has no part that the model did not answer: another review leaves out the same", last.Version, cl),
			"to see what it left out: criticizer why %d", cl)
	default:
		return last, nil
	}
}

var reviewTable = table[listedReview]{
	empty:  "no reviews",
	header: []string{"CHANGELIST", "STATE", "OUTCOME", "FINDINGS", "STARTED", "TOOK", "DETAIL"},
	cells: func(r listedReview) []any {
		outcome, findings := "-", "-"
		if r.Outcome != "" {
			outcome, findings = r.Outcome.Named(r.StandIn), fmt.Sprint(r.Findings)
		}
		took := operator.Age(time.Since(r.CreatedAt)) + " so far"
		if r.FinishedAt != nil {
			took = operator.Age(r.FinishedAt.Sub(r.CreatedAt))
		}
		return []any{versionCell(r.Changelist, r.Version), r.State, outcome, findings, operator.Stamp(r.CreatedAt), took, reviewDetail(r)}
	},
	wide: &table[listedReview]{
		header: []string{"WORKFLOW", "RUN"},
		cells:  func(r listedReview) []any { return []any{r.WorkflowID, r.RunID} },
	},
}
