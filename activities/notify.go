package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Notifier serves contract.QueueNotify: the only stage that sends mail. It reads reports and
// writes the outbox.
type Notifier struct {
	Log     *slog.Logger
	Reports artifactReader
	Outbox  outbox
	Post    post
	Policy  RecipientPolicy
	// Channels are notified once per review, besides the recipients. Default: none.
	Channels []Channel
	// Answers holds the readers' answers. Default: none are read.
	Answers mailbox
	// Links lead to the code. Default: none.
	Links review.Links
}

// NotifyResult counts the mails of a review.
type NotifyResult struct {
	Sent    int `json:"sent"`
	Already int `json:"already_sent"`
	// Channels are still to be notified, by [Poster.NotifyChannel].
	Channels []review.Channel `json:"channels,omitempty"`
}

// Notify mails the review to each recipient once. It tries all recipients before it
// returns the error of one. Findings that neither a recipient nor a channel can get are an
// error.
func (n *Notifier) Notify(ctx context.Context, p StageParams) (NotifyResult, error) {
	report, chosen, err := n.compose(ctx, p)
	if err != nil {
		return NotifyResult{}, err
	}
	if err := n.Outbox.DecideRecipients(ctx, report.Changelist, report.Version, chosen.excluded); err != nil {
		return NotifyResult{}, failed(report.Changelist, "store the recipients", err)
	}
	for _, e := range chosen.excluded {
		n.Log.InfoContext(ctx, "recipient skipped", "changelist", int64(p.Request.Changelist), "reason", person(e.User)+" "+e.Why)
	}
	if !chosen.quiet {
		if err := n.prepareChannels(ctx, report); err != nil {
			return NotifyResult{}, err
		}
	}
	var result NotifyResult
	for tried := map[int64]bool{}; ; {
		rows, err := n.Outbox.PrepareDeliveries(ctx, report.Changelist, report.Version, chosen.addresses)
		if err != nil {
			return NotifyResult{}, failed(report.Changelist, "prepare outbox", err)
		}
		if len(rows) == 0 && len(report.Findings) > 0 {
			return NotifyResult{}, chosen.nobody(report)
		}
		mails, channels := splitChannels(rows)
		result.Channels = channels
		// An operator can add or reopen a row while others are sent.
		mails = slices.DeleteFunc(mails, func(row review.Delivery) bool { return tried[row.ID] && !isOpen(row) })
		if len(mails) == 0 {
			return result, nil
		}
		var errs []error
		for _, row := range mails {
			sent, err := n.deliver(ctx, report, chosen.roles, row.ID)
			switch {
			case err != nil:
				errs = append(errs, err)
			case sent:
				result.Sent++
			default:
				result.Already++
			}
			tried[row.ID] = true
		}
		if len(errs) > 0 {
			return result, fmt.Errorf("notify about changelist %d: %d of %d recipients not notified: %w",
				report.Changelist, len(errs), len(mails), mostRetryable(errs))
		}
	}
}

// compose reads a report and adds what only stage notify knows: users without a usable
// address, what readers say about the findings, and the changes since an earlier version. It also
// returns the recipients.
func (n *Notifier) compose(ctx context.Context, p StageParams) (review.Report, choice, error) {
	cl := p.Request.Changelist
	report, err := n.report(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return review.Report{}, choice{}, err
	}
	if err := n.compare(ctx, &report, p.Request); err != nil {
		return review.Report{}, choice{}, err
	}
	if err := n.recall(ctx, report.Findings); err != nil {
		return review.Report{}, choice{}, err
	}
	known, err := n.Outbox.Recipients(ctx, report.Changelist, report.Version)
	if err != nil {
		return review.Report{}, choice{}, failed(cl, "read recipients", err)
	}
	policy := n.Policy
	if policy.Bounced, err = n.Outbox.Bounced(ctx, addressesOf(known)); err != nil {
		return review.Report{}, choice{}, failed(cl, "read bounced addresses", err)
	}
	quiet, outcome := p.Request.OnlyNew && len(report.Findings) == 0, report.Outcome
	if quiet { // with no new finding, no recipient is notified
		outcome, policy.CleanTo = review.OutcomeClean, CleanToNobody
	}
	chosen := policy.choose(known, outcome)
	if chosen.quiet = quiet; quiet {
		for i, e := range chosen.excluded {
			if e.Why == findingsOnly {
				chosen.excluded[i].Why = fmt.Sprintf("has nothing new since version %d", report.Earlier)
			}
		}
	}
	for _, person := range known {
		address, err := review.ParseAddress(person.Address)
		if policy.ReplyToAuthor && person.Role == review.RoleAuthor && err == nil {
			report.ReplyTo = address
		}
	}
	report.Unresolved, report.Outside = chosen.unresolved, chosen.outside
	report.Links = n.Links
	if err := n.Outbox.Dispute(ctx, report.Findings); err != nil {
		return review.Report{}, choice{}, failed(cl, "read opinions on findings", err)
	}
	return report, chosen, nil
}

// report reads the report of a review, or the one that it has adopted.
func (n *Notifier) report(ctx context.Context, of review.Owner, ref review.ArtifactRef) (review.Report, error) {
	owner, err := n.Outbox.ReportOwner(ctx, of, ref)
	if err != nil {
		return review.Report{}, failed(of.Changelist, "find owner of report", err)
	}
	body, err := n.Reports.Get(ctx, owner, ref)
	if err != nil {
		return review.Report{}, fmt.Errorf("read report on changelist %d: %w", of.Changelist, err)
	}
	var report review.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return review.Report{}, failure.Errorf(failure.SchemaInvalid, "decode report on changelist %d: unknown format", of.Changelist)
	}
	if report.Owner() != owner {
		return review.Report{}, failure.Errorf(failure.ArtifactForeign, "read report %s: it is of changelist %d version %d, not %d version %d",
			ref, report.Changelist, report.Version, owner.Changelist, owner.Version)
	}
	return report, nil
}

// compare adds to the report of a rerun, or of the submit of a shelf, what changed since
// the earlier report. If that has expired or cannot be decrypted, a retry does not help:
// the mail then has no comparison. A review that is to report only what is new fails instead.
func (n *Notifier) compare(ctx context.Context, report *review.Report, req review.Request) error {
	before, err := n.Outbox.EarlierReport(ctx, req.Changelist, req.Version)
	if err != nil {
		return failed(req.Changelist, "find earlier review", err)
	}
	report.Earlier, report.EarlierOf = before.Version, before.Changelist
	if report.Changelist != req.Changelist || report.Version != req.Version {
		report.Adopt(req, before.Until)
		return nil
	}
	if before.Report == "" && !req.OnlyNew {
		return nil
	}
	earlier, err := n.report(ctx, review.Owner{Changelist: before.Changelist, Version: before.Version}, before.Report)
	switch {
	case err == nil:
		report.Progress = review.Compare(earlier, *report)
		if req.OnlyNew {
			report.Findings = slices.DeleteFunc(report.Findings, func(f review.Finding) bool { return !report.Progress.IsNew(f) })
		}
	case failure.ClassOf(err).Retryable():
		return err
	case req.OnlyNew:
		return fmt.Errorf("find what is new since version %d: %w: resolve this dead letter, and review the change as a whole: criticizer-starter change-commit --review-version %d %d",
			before.Version, err, req.Version+1, req.Changelist)
	default:
		n.Log.InfoContext(ctx, "earlier report not compared", "changelist", int64(report.Changelist),
			"review_version", int(report.Version), "earlier", int(before.Version), "error", err)
	}
	return nil
}

// recall gives the findings that another review has reported before the texts of its report.
// Without them, because the report has expired, they name that review.
func (n *Notifier) recall(ctx context.Context, findings []review.Finding) error {
	reports := map[review.Owner]review.Report{}
	for i, f := range findings {
		if f.Origin == nil {
			continue
		}
		of := review.Owner{Changelist: f.Origin.Changelist, Version: f.Origin.Version}
		report, known := reports[of]
		if !known {
			ref, err := n.Outbox.ReportOfReview(ctx, of)
			if err == nil {
				report, err = n.report(ctx, of, ref)
			}
			if err != nil && failure.ClassOf(err).Retryable() {
				return err
			}
			reports[of] = report
		}
		for _, before := range report.Findings {
			if slices.Contains(before.Fingerprints(), f.Origin.Fingerprint) {
				findings[i].Title += ": " + before.Title
				findings[i].Explanation, findings[i].Suggestion = before.Explanation, before.Suggestion
			}
		}
	}
	return nil
}

// mostRetryable returns the error that decides about the next attempt, which all errors
// share: the retryable error with the longest Retry-After, or else the first error.
func mostRetryable(errs []error) error {
	best, longest := errs[0], time.Duration(-1)
	for _, err := range errs {
		var wait time.Duration
		if e, ok := errors.AsType[*failure.Error](err); ok {
			wait = e.RetryAfter
		}
		if failure.Retryable(err) && wait > longest {
			best, longest = err, wait
		}
	}
	return best
}
