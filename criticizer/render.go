package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// A fields is a list of label and text.
type fields [][]string

// add leaves out an empty text.
func (f *fields) add(label, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		*f = append(*f, []string{label, text})
	}
}

// addEach adds texts, of which the first has the label.
func addEach[T any](f *fields, label string, items []T, text func(T) string) {
	for _, item := range items {
		f.add(label, "%s", text(item))
		label = ""
	}
}

// print writes a review with all its parts.
func (v reviewView) print(w io.Writer) {
	fmt.Fprintf(w, "changelist %d, version %d: %s\n", v.Changelist, v.Version, stateText(v.ReviewRow))
	operator.WriteTable(w, "  ", v.fields())
	if n := v.Notice; n != nil {
		fmt.Fprintf(w, "  notice to the author, that the change is not reviewed: %s\n", cmp.Or(operator.StampIf(n.NotifiedAt), n.Why, "not yet"))
	}
	if len(v.Deliveries) > 0 {
		fmt.Fprintln(w)
		operator.WriteTable(w, "  ", deliveryTable.rows(v.Deliveries))
	}
	var excluded [][]string
	for _, r := range v.Recipients {
		if why := v.whyExcluded(r); why != "" {
			excluded = append(excluded, operator.Row(printable(cmp.Or(r.User, r.Address)), r.Role, why))
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintln(w)
		operator.WriteTable(w, "  ", excluded)
	}
	for _, l := range v.DeadLetters {
		fmt.Fprintln(w)
		l.print(w, "  ")
	}
}

// gapText names lines that no model could read, and why.
func gapText(u review.Unread) string {
	return strings.TrimSpace(fmt.Sprintf("%s, lines %s: %s %s %s", printable(u.Path), u.Lines, u.Why, u.Class, u.Context))
}

func stateText(r store.ReviewRow) string {
	text := string(r.State)
	if r.State == review.JobSucceeded {
		text += fmt.Sprintf(", %s, %s", r.Outcome.Named(r.StandIn), plural(r.Findings, "finding"))
	}
	if r.Forgotten {
		text += ", forgotten"
	}
	return text
}

func (v reviewView) fields() fields {
	var f fields
	f.add("workflow", "%s", v.WorkflowID)
	f.add("started", "%s", operator.Stamp(v.CreatedAt))
	f.add("ended", "%s", strings.TrimSpace(operator.StampIf(v.FinishedAt)+" "+v.ClosedHow))
	if v.Shelved {
		f.add("shelf", "yes")
	}
	f.add("skipped", "%s", v.SkippedBy)
	f.add("coverage", "%s", v.Coverage)
	if v.SkippedBy == "" && (v.Outcome == review.OutcomeNotReviewed || v.Outcome == review.OutcomePartial) {
		f.add("left out", "to list it: criticizer review show %d --review-version %d", v.Changelist, v.Version)
		addEach(&f, "not read", v.Gaps, gapText)
	}
	switch {
	case !v.temporalAsked:
		f.add("run", "%s (Temporal could not be asked)", v.RunID)
	case v.Run == nil:
		f.add("run", "%s (not known to Temporal)", v.RunID)
	default:
		f.add("run", "%s %s", v.Run.ID, v.Run.Status)
	}
	addEach(&f, "waits", v.waits(), func(text string) string { return text })
	return append(f, provenanceFields(v.Provenance)...)
}

// waits says what an unfinished review does, and why it waits: its activities, and the circuit
// breakers that are not closed.
func (v reviewView) waits() (why []string) {
	if v.Run != nil {
		for _, a := range v.Run.Activities {
			why = append(why, a.String())
		}
	}
	for _, o := range v.Outages {
		why = append(why, fmt.Sprintf("breaker of stage %s: %s", o.Stage, outageText(o)))
	}
	return why
}

// proofText returns how it is known that the model received the parts of a change.
func proofText(proofs []review.Proof) string {
	reported := 0
	for _, p := range proofs {
		reported += min(p.PromptTokens, 1)
	}
	return fmt.Sprintf("%s, proven by check codes, %d of them also by the reported tokens", plural(len(proofs), "part"), reported)
}

// provenanceFields describe how a review was made: model, cost, and what happened
// to the model's findings.
func provenanceFields(r *review.Record) fields {
	if r == nil {
		return nil
	}
	var f fields
	f.add("model", "%s, prompt %.12s", r.Model, r.PromptDigest)
	f.add("used", "%s", usageText(r))
	if len(r.Proofs) > 0 {
		f.add("read", "%s", proofText(r.Proofs))
	}
	f.add("anchors", "%s", tally([]review.Anchor{review.AnchorAdded, review.AnchorContext, review.AnchorRemoved, review.AnchorFile}, r.Anchors))
	f.add("dropped", "%s", tally(review.DropReasons(), r.Dropped))
	f.add("fixes lost", "%s", tally(review.FixDropReasons(), r.FixesDropped))
	if c := r.Check; c != nil {
		f.add("verification", "%s", strings.TrimSpace(fmt.Sprintf("of %d: %d removed, %d lowered, %d without evidence, %d failed %s", c.Checked, c.Removed, c.Lowered, c.Rejected, c.Failed, c.Why)))
	}
	addEach(&f, "fallbacks", r.Switches, func(s review.Switch) string {
		return fmt.Sprintf("%s for %s in %s, %s", s.To, s.From, plural(s.Calls, "call"), s.Why)
	})
	return f
}

func usageText(r *review.Record) string {
	u := r.Usage
	text := fmt.Sprintf("%s, %s from the cache, tokens in %d, out %d, cached %d",
		plural(u.Calls, "call"), plural(u.Kept, "answer"), u.PromptTokens, u.CompletionTokens, u.CachedTokens)
	if u.Estimated {
		text += " (estimated)"
	}
	if r.Cost != nil {
		text += fmt.Sprintf(", %.4f %s", r.Cost.Amount, r.Cost.Currency)
	}
	return text
}

// tally lists the counts above zero in the order of all.
func tally[K ~string](all []K, counts map[K]int) string {
	var parts []string
	for _, k := range all {
		if n := counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	return strings.Join(parts, ", ")
}

// reviewDetail returns why a review was skipped, failed or ended, or what it waits for.
func reviewDetail(r listedReview) string {
	var words []string
	if r.Shelved {
		words = append(words, "shelf")
	}
	if r.SkippedBy != "" {
		words = append(words, "skipped: "+string(r.SkippedBy))
	}
	if r.Outcome == review.OutcomePartial || r.Outcome == review.OutcomeNotReviewed {
		words = append(words, r.Coverage)
	}
	if l := r.DeadLetter; l != nil {
		words = append(words, fmt.Sprintf("%s in stage %s, dead letter %d %s", l.Class, l.Stage, l.ID, l.State))
	}
	if r.Stage != "" {
		words = append(words, "in stage "+string(r.Stage))
	}
	words = append(append(words, r.ClosedHow), r.Waits...)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "; ")
}

// marks lists what is unusual about a dead letter.
func marks(l store.DeadLetter) string {
	var words []string
	for _, m := range []struct {
		set  bool
		word string
	}{{l.Escalated, "escalated"}, {l.Unexplained, "unexplained"}, {l.Interrupted, "interrupted"}} {
		if m.set {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, " ")
}

// print writes a dead letter with all that is known about it.
func (v deadLetterView) print(w io.Writer, indent string) {
	fmt.Fprintf(w, "%sdead letter %d: %s in stage %s\n", indent, v.ID, v.ErrorClass, v.Stage)
	about := v.ErrorClass.Describe()
	var f fields
	f.add("review", "%s", reviewName(v.Changelist, v.Version))
	f.add("workflow", "%s", v.WorkflowID)
	f.add("failed run", "%s", v.RunID)
	f.add("in Temporal", "%s", v.TemporalURL)
	f.add("state", "%s", strings.TrimSpace(string(v.State)+" "+marks(v.DeadLetter)))
	f.add("meaning", "%s", about.Meaning)
	f.add("attempts", "%d, from %s to %s", v.Attempts, operator.Stamp(v.FirstFailureAt), operator.Stamp(v.LastFailureAt))
	f.add("recorded", "%s", operator.Stamp(v.RecordedAt))
	f.add("context", "%s", contextText(v.SanitizedContext))
	f.add("who acts", "%s", about.Actor)
	f.add("what to do", "%s", v.Hint)
	f.add("page", "%s", v.pageText())
	if v.ResolvedAt != nil {
		f.add("resolved", "%s %s", operator.Stamp(*v.ResolvedAt), byWhom(v.ResolvedBy, v.Resolution))
	}
	addEach(&f, "replays", v.Replays, func(r store.Replay) string {
		return fmt.Sprintf("%s run %s%s %s", operator.Stamp(r.StartedAt), r.NewRunID, replayKind(r), byWhom(r.Who, r.Reason))
	})
	operator.WriteTable(w, indent+"  ", f)
}

// printDetails writes what only deadletter show prints: the audit log and the
// last error.
func (v deadLetterView) printDetails(w io.Writer) {
	printTrail(w, v.Trail)
	fmt.Fprintf(w, "\nlast error:\n%s\n", indented(v.LastStack, "  "))
}

func (v deadLetterView) pageText() string {
	switch {
	case v.Page == nil:
		return ""
	case v.Page.SentAt != nil:
		return fmt.Sprintf("%s: sent %s", v.Page.Reason, operator.Stamp(*v.Page.SentAt))
	case isUnresolved(v.DeadLetter):
		return fmt.Sprintf("%s: not sent yet, %s", v.Page.Reason, plural(v.Page.Attempts, "attempt"))
	}
	return fmt.Sprintf("%s: not sent, the dead letter is settled", v.Page.Reason)
}

func replayKind(r store.Replay) string {
	kind := ""
	if r.Full {
		kind += ", full restart"
	}
	if !r.Explained {
		kind += ", UNEXPLAINED"
	}
	if r.AcknowledgedBy != "" {
		kind += ", acknowledged by " + printable(r.AcknowledgedBy)
	}
	return kind
}

// contextText lists the context of a failure in a fixed order.
func contextText(values map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if values[key] != "" {
			words = append(words, key+"="+values[key])
		}
	}
	return strings.Join(words, " ")
}

func printTrail(w io.Writer, trail []store.AuditEntry) {
	if len(trail) == 0 {
		return
	}
	fmt.Fprintln(w, "\naudit log:")
	for _, e := range trail {
		line := fmt.Sprintf("%s  %s (login %s) %s", operator.Stamp(e.At), cmp.Or(e.Claimed, e.Role), e.Actor, e.Action)
		if text := textOf(e); text != "" {
			line += ": " + text
		}
		fmt.Fprintln(w, "  "+printable(line))
	}
}

// textOf returns what a person wrote into an entry of the audit log.
func textOf(e store.AuditEntry) string {
	var detail struct{ Note, Reason string }
	_ = json.Unmarshal(e.Detail, &detail) // an entry of another form has no text
	return detail.Note + detail.Reason
}

// carriesKey names the part of a message that holds its key, by channel.
var carriesKey = map[review.Channel]string{
	review.ChannelMail:    "its Message-ID and X-Criticizer-Key",
	review.ChannelWebhook: "its Idempotency-Key",
	review.ChannelSwarm:   "the last line of the comment",
}

// print writes a delivery with all that is known about it.
func (v deliveryView) print(w io.Writer) {
	var f fields
	f.add("delivery", "%d", v.ID)
	f.add("review", "%s, %s", reviewName(v.Changelist, v.Version), v.JobState)
	f.add("workflow", "%s", v.WorkflowID)
	f.add("recipient", "%s", v.Recipient)
	f.add("status", "%s", v.Status)
	f.add("attempts", "%d", v.Attempts)
	for _, key := range v.Keys {
		f.add("key", "%s, part of %s", key, carriesKey[keyOf(v.OutboxEntry).Channel()])
	}
	f.add("last attempt", "%s", operator.StampIf(v.LastAttemptAt))
	if v.Begun {
		f.add("", "its result is unknown: the mail may have been accepted")
	}
	f.add("message", "%s", v.NotificationID)
	f.add("sent", "%s", operator.StampIf(v.NotifiedAt))
	f.add("evidence", "%s", v.Evidence)
	f.add("confirmed", "%s", operator.StampIf(v.ConfirmedAt))
	f.add("refused", "%s", v.ErrorClass)
	if v.BouncedAt != nil {
		f.add("bounced", `%s; reviews leave this address out until it is sent again: criticizer delivery resend %d --reason "WHY"`, operator.Stamp(*v.BouncedAt), v.ID)
	}
	operator.WriteTable(w, "", f)
	for _, a := range v.Tries {
		result := cmp.Or(a.Result, "no result: it runs, or its worker died")
		fmt.Fprintf(w, "\nattempt %d, begun %s: %s\n", a.Attempt, operator.Stamp(a.BegunAt), result)
		var f fields
		f.add("accepted", "%s", operator.StampIf(a.AcceptedAt))
		f.add("ended", "%s", operator.StampIf(a.EndedAt))
		f.add("answer", "%s", printable(a.Answer))
		f.add("evidence", "%s", a.Evidence)
		f.add("failure", "%s", printable(a.Detail))
		operator.WriteTable(w, "  ", f)
	}
	printTrail(w, v.Trail)
}
