package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// An explanation answers why something about a changelist is as it is, from what was recorded
// when it happened.
type explanation struct {
	Version review.Version `json:"review_version,omitempty"` // 0 without a review
	About   string         `json:"about"`                    // review, mail, files, remarks or trigger
	Why     string         `json:"why"`
	Next    string         `json:"next,omitempty"` // what to do, if anything
}

func (c *app) whyCommand() *cobra.Command {
	var files bool
	cmd := &cobra.Command{
		Use: "why CHANGELIST [PERSON]", Short: "Explain why a changelist has no review, or a person no mail",
		Long: `Answers an author's question: why is there no review, no mail, or only this? It
says whether a trigger was seen, what the review waits for, by which rule it was
skipped, what ended it, who was not notified, and what was left out. PERSON, a
Perforce user or an address, limits the answer to this person's mail.

The answers are records of the time when it happened, not of the configuration of
today; criticizer preview shows what would happen today. A request in the spool
of a trigger is seen on the host of the trigger only.

With --files it lists the files and lines that were left out. That reads the
report, as criticizer review show does, with the same role and keyset.`,
		Example: `  criticizer why 4711
  criticizer why 4711 olga
  criticizer why 4711 --json | jq '.[] | select(.about == "mail").why'`,
	}
	cmd.Flags().BoolVar(&files, "files", false, "list the files and lines that were left out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cl, err := parseChangelist(args[0])
		if err != nil {
			return err
		}
		ctx, person := cmd.Context(), strings.Join(args[1:], "")
		db, cfg, err := c.database(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		views, err := readRows(ctx, db, cfg, cl)
		if err != nil {
			return err
		}
		temporal, errTemporal := askTemporal(ctx, cfg, views)
		if temporal != nil {
			defer temporal.Close()
		}
		answers := []explanation{} // not null in JSON
		if len(views) == 0 {
			none, err := explainNoReview(ctx, db, cfg, temporal, cl)
			if err != nil {
				return err
			}
			answers = append(answers, none...)
		}
		for _, v := range views {
			mails, err := v.explainMails(ctx, db, person)
			if err != nil {
				return err
			}
			if person == "" {
				answers = append(append(answers, v.explainReview()), v.explainLeftOut()...)
			}
			answers = append(answers, mails...)
		}
		if files && len(views) > 0 {
			lines, err := c.leftOut(ctx, cl, views)
			if err != nil {
				return err
			}
			answers = append(answers, lines...)
		}
		return errors.Join(c.print(answers, func(w io.Writer) {
			var rows [][]string
			for _, a := range answers {
				rows = append(rows, operator.Row(fmt.Sprintf("version %d", a.Version), a.About, a.Why))
				if a.Version == 0 {
					rows[len(rows)-1][0] = "no review"
				}
				if a.Next != "" {
					rows = append(rows, operator.Row("", "", "  next: "+a.Next))
				}
			}
			fmt.Fprintf(w, "changelist %d\n", cl)
			operator.WriteTable(w, "  ", rows)
		}), errTemporal)
	}
	return cmd
}

// explainReview says how the review ended, or what it waits for.
func (v reviewView) explainReview() explanation {
	e := explanation{v.Version, "review", stateText(v.ReviewRow), ""}
	again := fmt.Sprintf("criticizer-starter change-commit --review-version %d %d", v.Version+1, v.Changelist)
	if v.Forgotten {
		e.Why += ": " + v.ClosedHow
		return e
	}
	switch v.State {
	case review.JobInProgress:
		e.Why += ": " + cmp.Or(strings.Join(v.waits(), "; "), "nothing is known to stop it")
		e.Next = "to see queues, workers and breakers: criticizer top"
	case review.JobRetryableFailed:
		e.Next = "if it is still wanted: " + again
		for _, l := range v.DeadLetters {
			if l.ResolvedAt != nil {
				e.Why += fmt.Sprintf(": dead letter %d was resolved %s", l.ID, byWhom(l.ResolvedBy, l.Resolution))
			}
			if isUnresolved(l.DeadLetter) {
				e.Why += fmt.Sprintf(": stage %s failed with %s, %s; dead letter %d is %s", l.Stage, l.ErrorClass, l.ErrorClass.Describe().Meaning, l.ID, l.State)
				e.Next = fmt.Sprintf("%s; to see all of it: criticizer deadletter show %d", l.Hint, l.ID)
			}
		}
		if n := v.Notice; n != nil {
			switch {
			case n.Why != "":
				e.Why += "; the author " + n.Why
			case n.NotifiedAt != nil:
				e.Why += "; the author was notified at " + operator.StampIf(n.NotifiedAt)
			default: // the row is written before the mail is sent
				e.Why += "; a mail to the author is being sent, or its result is unknown"
			}
		}
	case review.JobCanceled:
		e.Why, e.Next = cmp.Or(v.ClosedHow, e.Why), "if it is still wanted: "+again
	case review.JobSucceeded:
		switch {
		case v.SkippedBy != "":
			e.Why, e.Next = e.Why+": skipped, "+string(v.SkippedBy), "change the rule; then "+again
		case v.Outcome == review.OutcomeNotReviewed, v.Outcome == review.OutcomePartial:
			e.Why += ": " + cmp.Or(v.Tally.Reason, v.Coverage)
			e.Next = fmt.Sprintf("to list what was left out: criticizer why %d --files", v.Changelist)
		default:
			e.Why += ": " + v.Coverage
		}
	}
	return e
}

// explainLeftOut counts what the report does not have: files by reason, and remarks.
func (v reviewView) explainLeftOut() (all []explanation) {
	for _, r := range v.Tally.Rest {
		all = append(all, explanation{v.Version, "files", fmt.Sprintf("%s %s: %s", plural(r.Files, "file"), r.State, r.Why), ""})
	}
	for _, u := range v.Gaps {
		all = append(all, explanation{v.Version, "files", gapText(u), ""})
	}
	if p := v.Provenance; p != nil && len(p.Dropped) > 0 {
		all = append(all, explanation{v.Version, "remarks", "dropped: " + tally(review.DropReasons(), p.Dropped), ""})
	}
	return all
}

// leftOut lists the files and lines that the newest report does not cover, from the report. That
// may be one of a shelf, which the review has adopted.
func (c *app) leftOut(ctx context.Context, cl review.Changelist, views []*reviewView) (all []explanation, err error) {
	var newest review.Version
	for _, v := range views {
		if v.Outcome != "" {
			newest = v.Version
		}
	}
	report, err := c.readReport(ctx, cl, 0, fmt.Sprintf("criticizer why %d --files", cl))
	for _, f := range report.Coverage {
		if state, why := f.Worst(); why != "" {
			lines := f.Hidden()
			if lines != "" {
				lines = ", lines " + lines
			}
			all = append(all, explanation{newest, "files", fmt.Sprintf("%s%s: %s, %s", cmp.Or(f.Path, "a file"), lines, state, why), ""})
		}
	}
	return all, err
}

// explainMails says of each person, or of one, whether a mail was sent, and if not why.
func (v reviewView) explainMails(ctx context.Context, db *store.DB, person string) (all []explanation, err error) {
	wanted := func(names ...string) bool {
		for _, name := range names {
			if person == "" || strings.EqualFold(person, name) {
				return true
			}
		}
		return false
	}
	users := map[string]string{}
	for _, r := range v.Recipients {
		if r.Address != "" {
			users[strings.ToLower(r.Address)] = r.User
		}
		if why := v.whyExcluded(r); why != "" && wanted(r.User, r.Address) {
			all = append(all, explanation{v.Version, "mail", printable(cmp.Or(r.User, r.Address)) + ", " + string(r.Role) + ": " + why, ""})
		}
	}
	for _, d := range v.Deliveries {
		if user := users[d.Recipient]; wanted(user, d.Recipient) {
			why, next, err := explainDelivery(ctx, db, d)
			if err != nil {
				return nil, err
			}
			all = append(all, explanation{v.Version, "mail", strings.TrimSpace(printable(user)+" "+d.Recipient) + ": " + why, next})
		}
	}
	if person != "" && len(all) == 0 {
		why := "is neither author, subscriber nor owner of the change"
		if len(v.Recipients) == 0 {
			why = "has no delivery; the people around the change are not known: they are recorded by stage fetch, and for 30 days"
		}
		all = append(all, explanation{v.Version, "mail", printable(person) + " " + why, ""})
	}
	return all, nil
}

// whyExcluded returns why a person is not notified, or empty: who is notified has a delivery.
func (v reviewView) whyExcluded(r store.RecipientDecision) string {
	switch {
	case r.Why != nil && *r.Why == "":
		return ""
	case r.Why != nil:
		return "not notified, " + *r.Why
	case v.SkippedBy != "":
		return "not notified, the review was skipped"
	case v.State == review.JobCanceled:
		return "not notified, the review was canceled"
	case v.State == review.JobRetryableFailed && !slices.ContainsFunc(v.DeadLetters, func(l deadLetterView) bool { return isUnresolved(l.DeadLetter) }):
		return "not notified, the review stopped"
	}
	return "to be decided, stage notify has not begun"
}

func explainDelivery(ctx context.Context, db *store.DB, d store.OutboxEntry) (why, next string, err error) {
	if d.Status == review.DeliverySent {
		why = "accepted by the server " + operator.StampIf(d.NotifiedAt)
		if d.ConfirmedAt != nil {
			why += ", and seen there later"
		}
		return why, fmt.Sprintf("search the mailbox and its spam folder; then the server's log, by the key of: criticizer delivery show %d", d.ID), nil
	}
	tries, err := db.Attempts(ctx, d.ID)
	if err != nil {
		return "", "", err
	}
	failed := ""
	for _, a := range tries {
		if a.Detail != "" {
			failed, _, _ = strings.Cut("; last failure: "+printable(a.Detail), "\n")
		}
	}
	act := fmt.Sprintf("resend, readdress or waive it; to see its attempts: criticizer delivery show %d", d.ID)
	switch {
	case d.Status == review.DeliveryWaived:
		trail, err := db.DeliveryTrail(ctx, d.ID)
		for _, e := range trail {
			if done := map[string]string{"waive": "waived", "readdress": "readdressed"}[e.Action]; done != "" {
				why = done + " " + byWhom(e.Claimed, textOf(e))
			}
		}
		return cmp.Or(why, "waived"), "", err
	case d.BouncedAt != nil:
		return "the address bounced at " + operator.StampIf(d.BouncedAt) + failed, act, nil
	case d.Status == review.DeliveryFailed:
		return "refused for good, " + d.ErrorClass + failed, act, nil
	case d.Status == review.DeliveryHeld:
		return "held: it may have been sent, and no evidence shows whether it was" + failed, act, nil
	case d.JobState == review.JobCanceled:
		return "not sent: its review was canceled" + failed, "", nil
	}
	return "not sent yet, " + plural(d.Attempts, "attempt") + failed, "", nil
}

// explainNoReview says how far the request for a review came.
func explainNoReview(ctx context.Context, db *store.DB, cfg *settings.Config, temporal *runs, cl review.Changelist) ([]explanation, error) {
	all := explainSpool(cfg.Starter.SpoolDir, cl)
	letters, err := db.DeadLetters(ctx, store.DeadLetterFilter{Changelist: cl})
	for _, l := range letters {
		refusal, _, _ := strings.Cut(l.LastStack, "\n")
		all = append(all, explanation{About: "trigger", Why: "its request was refused: " + refusal, Next: fmt.Sprintf("to see all of it: criticizer deadletter show %d", l.ID)})
	}
	if err != nil || temporal == nil || len(all) > 0 {
		return all, err
	}
	found, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: temporal.Name, Query: fmt.Sprintf("%s = %d", contract.AttributeChangelist.GetName(), cl),
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of changelist %d: %w", cl, err)
	}
	for _, run := range found.GetExecutions() {
		e := explanation{About: "trigger", Why: fmt.Sprintf("workflow %s is %s and has not opened a job", run.GetExecution().GetWorkflowId(), strings.ToLower(run.GetStatus().String()))}
		if e.Next = "a worker has to serve the stage workflows; to see its queue: criticizer top"; run.GetType().GetName() == contract.SettleShelf {
			e.Why, e.Next = e.Why+": a shelf is reviewed when it has not changed for shelf.quiet", ""
		}
		all = append(all, e)
	}
	if len(all) > 0 {
		return all, nil
	}
	e := explanation{About: "trigger", Next: fmt.Sprintf("on the Perforce host: criticizer-starter drain; then: criticizer-starter change-commit --wait %d", cl)}
	switch since, mark, known, err := db.CatchUpMark(ctx, cfg.ServerID); {
	case err != nil:
		return nil, err
	case !known:
		e.Why = "no trigger reported it, and no search for changelists without a review has run on server " + cfg.ServerID
	case cl <= since:
		e.Why = fmt.Sprintf("it is older than the installation, which reviews what was submitted after %d", since)
	case cl > mark:
		e.Why = fmt.Sprintf("no trigger reported it, and the search for changelists without a review has come to %d", mark)
	default:
		e.Why = fmt.Sprintf("no trigger reported it, and the search for submitted changelists, which has come to %d, did not find it: it is pending, or the account may not see it", mark)
	}
	return append(all, e), nil
}

// explainSpool finds the request in the spool of a trigger on this host. It says nothing about a
// spool that is not on this host.
func explainSpool(dir string, cl review.Changelist) (all []explanation) {
	const maxRequest = 64 << 10
	files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
	if _, err := os.ReadDir(dir); errors.Is(err, os.ErrPermission) {
		return []explanation{{About: "trigger", Why: "this account may not read the spool " + dir, Next: "run the command as the account of the trigger, or as root"}}
	}
	for _, name := range files {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxRequest {
			continue
		}
		var req review.Request
		body, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(body, &req) != nil || req.Changelist != cl {
			continue
		}
		e := explanation{About: "trigger", Why: "its request waits in the spool since " + operator.Stamp(info.ModTime()), Next: "to start it now: criticizer-starter drain"}
		if !strings.HasSuffix(name, ".json") {
			e.Why, e.Next = "its request was set aside as "+name+": Temporal refuses it", "to see why: criticizer-starter change-commit "+cl.String()
		}
		all = append(all, e)
	}
	return all
}
