package llm

import (
	"context"
	"encoding/json"
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
	for _, v := range all {
		calls.Go(func() (err error) {
			defer run.recoverInto(&err)
			answer, err := run.ask(ctx, v.question, 0)
			over, isOver := errors.AsType[overBudgetError](err)
			if err != nil && v.pack != nil && ctx.Err() == nil && (isOver || splitsFor(err) > 0) { // a smaller prompt may succeed
				v.use, v.pack = review.ContextUse{LeftOut: v.use.LeftOut + v.use.Shown}, nil
				answer, err = run.ask(ctx, v.question, 0)
				over, isOver = errors.AsType[overBudgetError](err)
			}
			var verdicts []verdict
			if err == nil && json.Unmarshal(answer.Answer, &verdicts) != nil {
				return failure.Errorf(failure.InvariantViolated, "decode cached verdicts: not in the format of this version")
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			check.Checked += len(v.findings)
			if err != nil {
				check.Failed += len(v.findings)
				if check.Why = string(failure.ClassOf(err)); isOver {
					check.Why = string(over.reason)
				}
				run.lg.WarnContext(ctx, "verification failed: findings stay unchanged", "changelist", run.change.Number, "error", err)
				return nil
			}
			run.context = run.context.Add(v.use)
			for _, d := range verdicts {
				switch f := v.findings[d.Finding-1]; {
				case d.Rejected:
					check.Rejected++
				case d.Drop:
					f.refuted = true
					check.Removed++
				default:
					f.Severity = d.Severity
					check.Lowered++
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, nil, err
	}
	run.counts.drop(review.DropRefuted, check.Removed)
	found = slices.DeleteFunc(found, func(f candidate) bool { return f.refuted })
	sortCandidates(found) // severities may be lower now
	return run.cfg.dropMinor(found, run.counts), &check, nil
}

// A verification is one call about some findings in one part of the change. Its prompt
// begins like the prompt that reviewed the part, so that a provider can use its cache.
type verification struct {
	question
	findings []*candidate
}

// verifications groups the findings to verify by part, in their order.
func (run *run) verifications(found []candidate) []*verification {
	var all []*verification
	byPart := map[int]*verification{}
	for i, f := range found {
		if f.byRedaction || !run.cfg.Verify.covers(f.Severity) {
			continue
		}
		v := byPart[f.part]
		if v == nil {
			v = &verification{question: run.parts[f.part]}
			byPart[f.part] = v
			all = append(all, v)
		}
		v.findings = append(v.findings, &found[i])
	}
	for _, v := range all {
		v.list, v.listed = listVerdicts, v.render()
		v.read = func(ctx context.Context, items []json.RawMessage) (json.RawMessage, error) {
			objections, _, err := decodeItems[objection](ctx, run.prompts.items[listVerdicts], items)
			if err != nil {
				return nil, err
			}
			return json.Marshal(v.judge(objections)) //nolint:contextcheck // parsing a few lines is not cancelled
		}
		shown := v.shown()
		flagged := slices.DeleteFunc(slices.Clone(v.part), func(s section) bool {
			return !slices.ContainsFunc(v.findings, func(f *candidate) bool { return f.Path == s.file.path })
		})
		v.pack, v.use = run.contextOf(flagged, contextOfCheck, run.room-shown.tokens()-countTokens(v.listed)-2*codeTokens(0), v.context)
	}
	return all
}

// An objection is the model's verdict on one finding, valid under the schema.
type objection struct {
	Finding  int    `json:"finding"` // its number in the list, from 1
	Evidence string `json:"evidence"`
	Reason   string `json:"reason"`
	Verdict  string `json:"verdict"` // keep, drop or lower
	Severity string `json:"severity"`
}

// A verdict is an objection whose evidence was checked. It holds no text of the
// model.
type verdict struct {
	Finding  int             `json:"finding"`
	Drop     bool            `json:"drop,omitempty"`
	Severity review.Severity `json:"severity,omitempty"` // the lower severity
	Rejected bool            `json:"rejected,omitempty"` // for lack of evidence
}

// render renders the findings. They were redacted, and none of their lines can pass
// for a line of the prompt.
func (v *verification) render() string {
	var out strings.Builder
	for i, f := range v.findings {
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

// judge turns objections into verdicts: the first one on each finding.
func (v *verification) judge(objections []objection) []verdict {
	var out []verdict
	for _, o := range objections {
		known := o.Finding >= 1 && o.Finding <= len(v.findings)
		if !known || slices.ContainsFunc(out, func(d verdict) bool { return d.Finding == o.Finding }) {
			continue
		}
		f := v.findings[o.Finding-1].Finding
		d := verdict{Finding: o.Finding}
		switch lower := review.Severity(o.Severity); {
		case o.Verdict == "keep":
			continue
		case !slices.Concat(v.shown(), v.pack).proves(o.Evidence, f):
			d.Rejected = true
		case o.Verdict == "drop":
			d.Drop = true
		case rank(lower) > rank(f.Severity):
			d.Severity = lower
		default: // the same severity or a higher one
			d.Rejected = true
		}
		out = append(out, d)
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
