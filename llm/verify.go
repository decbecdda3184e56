package llm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/outline"
)

// maxListedBytes bounds each text of a finding in a verification.
const maxListedBytes = 1_500

// verify is the verification pass: calls that try to refute findings, one for each part
// of the change. It can only remove findings or lower their severity; if a call fails,
// its findings stay unchanged. The check is nil if there was nothing to verify. An error is
// that of ctx, or has class INVARIANT_VIOLATED.
func (run *run) verify(ctx context.Context, found []candidate) ([]candidate, *review.Check, error) {
	all := run.verifications(found)
	if len(all) == 0 {
		return found, nil, nil
	}
	var check review.Check
	var mu sync.Mutex // guards check and found
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, q := range all {
		calls.Go(func() (err error) {
			defer run.recoverInto(&err)
			answer, err := run.ask(ctx, q)
			over, isOver := errors.AsType[overBudgetError](err)
			if err != nil && q.pack != nil && ctx.Err() == nil && (isOver || splitsFor(err) > 0) { // a smaller prompt may succeed
				q.use, q.pack = review.ContextUse{LeftOut: q.use.LeftOut + q.use.Shown}, nil
				answer, err = run.ask(ctx, q)
				over, isOver = errors.AsType[overBudgetError](err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			check.Checked += len(q.flagged)
			if err != nil {
				check.Failed += len(q.flagged)
				if check.Why = string(failure.ClassOf(err)); isOver {
					check.Why = string(over.reason)
				}
				run.lg.WarnContext(ctx, "verification failed: findings stay unchanged", "changelist", run.change.Number, "error", err)
				return nil
			}
			run.context = run.context.Add(q.use)
			for _, v := range answer.Verdicts {
				switch f := q.flagged[v.Finding-1]; v.Verdict {
				case "drop":
					f.refuted = true
					check.Removed++
				case "lower":
					f.Severity = v.Severity
					check.Lowered++
				default:
					check.Rejected++
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, nil, err
	}
	run.counts.drop(review.DropRefuted, check.Removed)
	var kept []candidate
	for _, f := range found {
		if !f.refuted {
			kept = append(kept, f)
			continue
		}
		others, _ := merge(f.same) // the evidence is about the first place only
		kept = append(kept, others...)
	}
	sortCandidates(kept) // severities may be lower now
	return run.cfg.dropMinor(kept, run.counts), &check, nil
}

// verifications returns one question for each part with findings to verify. Its prompt begins like
// the prompt that reviewed the part, so that a provider can use its cache.
func (run *run) verifications(found []candidate) (all []question) {
	flagged := map[int][]*candidate{} // by part
	var parts []int                   // the worst finding first
	for i, f := range found {
		if f.byRedaction || !run.cfg.Verify.covers(f.Severity) {
			continue
		}
		if flagged[f.part] == nil {
			parts = append(parts, f.part)
		}
		flagged[f.part] = append(flagged[f.part], &found[i])
	}
	for _, part := range parts {
		q := run.parts[part]
		q.list, q.flagged, q.listed = listVerdicts, flagged[part], listing(flagged[part])
		shown := q.shown()
		about := slices.DeleteFunc(slices.Clone(q.part), func(s section) bool {
			return !slices.ContainsFunc(q.flagged, func(f *candidate) bool { return f.Path == s.file.path })
		})
		q.pack, q.use = run.contextOf(about, contextOfCheck, run.room-shown.tokens()-countTokens(q.listed)-2*codeTokens(0), q.context)
		all = append(all, q)
	}
	return all
}

// A verdict is the model's verdict on one finding, valid under the schema.
type verdict struct {
	Finding  int             `json:"finding"`            // its number in the list, from 1
	Verdict  string          `json:"verdict"`            // keep, drop or lower; rejected if its evidence proves nothing
	Severity review.Severity `json:"severity,omitempty"` // the lower severity
	Evidence string          `json:"evidence,omitempty"` // until it is checked
}

// listing renders findings to verify. They were redacted, and none of their lines can pass for a
// line of the prompt.
func listing(findings []*candidate) string {
	var out strings.Builder
	for i, f := range findings {
		fmt.Fprintf(&out, "finding %d\nseverity: %s\ncategory: %s\nlines: %d to %d\n", i+1, f.Severity, f.Category, f.StartLine, f.EndLine)
		for _, field := range []struct{ name, text string }{
			{"path", f.Path}, {"title", f.Title}, {"explanation", f.Explanation}, {"code", f.Quote},
		} {
			short, _ := clip(field.text, maxListedBytes, "text")
			out.WriteString(field.name + ":\n" + quoteLines(short))
		}
	}
	return out.String()
}

// judge returns the first verdict on each finding if it changes something, without its evidence,
// which it checks. A verdict that lowers to the same severity or a higher one is rejected, too.
func (q question) judge(verdicts []verdict) (out []verdict) {
	judged := make([]bool, len(q.flagged))
	for _, v := range verdicts {
		known := v.Finding >= 1 && v.Finding <= len(q.flagged)
		if !known || judged[v.Finding-1] {
			continue
		}
		judged[v.Finding-1] = true
		if v.Verdict == "keep" {
			continue
		}
		f := q.flagged[v.Finding-1].Finding
		lowers := v.Verdict == "lower" && v.Severity.Rank() > f.Severity.Rank()
		if v.Verdict != "drop" && !lowers || !slices.Concat(q.shown(), q.pack).proves(v.Evidence, f) {
			v.Verdict = "rejected"
		}
		v.Evidence = ""
		out = append(out, v)
	}
	return out
}

// An author's statements about the code are not evidence: a line that only holds a comment,
// and an added line with a comment, with a string of more than one word, or that reads like a
// sentence.
var (
	commentLine = regexp.MustCompile(`^\s*(//|#|/\*|\*|--|;|<!--|%|"""|''')`)
	statement   = regexp.MustCompile("//|/\\*|\\*/|(?:^|\\s)(?:#|--|;)(?:\\s|$)|[\"'`][^\"'`]*[ \\t<>=][^\"'`]*[\"'`]|\"\"\"|'''|(?:\\pL{2,} ){3}\\pL{2,}")
)

// proves reports whether evidence is code that c shows, with at least one line
// besides the code that f is about.
func (c chunk) proves(evidence string, f review.Finding) bool {
	var flagged, other []string
	for _, l := range codeLines(f.Quote) {
		flagged = append(flagged, squeeze(l))
	}
	for _, want := range codeLines(withoutHeads(evidence, nil)) {
		s, l, ok := c.findLine(want)
		if !ok {
			return false
		}
		if !slices.Contains(flagged, squeeze(l.text)) && s.isCode(l) {
			other = append(other, l.text)
		}
	}
	return hasCode(other)
}

// isCode reports whether l is code. An added line is code only if the grammar of the file's
// language finds a name in it, outside of comments and strings.
func (s section) isCode(l line) bool {
	if commentLine.MatchString(l.text) || l.mark == '+' && statement.MatchString(l.text) {
		return false
	}
	if l.mark != '+' {
		return true
	}
	var text strings.Builder
	number, at := 0, 0
	for _, h := range s.hunks {
		for _, other := range h.lines {
			if other.mark == '-' {
				continue
			}
			text.WriteString(other.text + "\n")
			if number++; other.number == l.number {
				at = number
			}
		}
	}
	parsed := outline.Of(context.Background(), s.file.path, text.String())
	return parsed.Parsed && len(parsed.Names[at]) > 0
}

// findLine returns the line that want quotes, with or without number and mark, and its
// section. An unchanged line comes before an added one.
func (c chunk) findLine(want string) (in section, found line, ok bool) {
	unmarked := lineMarks.ReplaceAllString(want, "")
	for _, s := range c {
		for _, h := range s.hunks {
			for _, l := range h.lines {
				if (!ok || found.mark == '+' && l.mark != '+') && (equalExceptBlanks(l.text, want) || equalExceptBlanks(l.text, unmarked)) {
					in, found, ok = s, l, true
				}
			}
		}
	}
	return in, found, ok
}
