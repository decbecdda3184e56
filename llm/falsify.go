package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// refute gives the findings that are to have one a second look, each part of the
// change in a call of its own. It can only remove findings or lower them, and
// where it fails they stay as they are. The check is nil if there was nothing to
// look at. An error is one of ctx.
func (run *run) refute(ctx context.Context, found []candidate) ([]candidate, *review.Check, error) {
	looks := run.looks(found)
	if len(looks) == 0 {
		return found, nil, nil
	}
	var check review.Check
	var mu sync.Mutex // guards check and found
	var calls errgroup.Group
	calls.SetLimit(run.cfg.Concurrency)
	for _, look := range looks {
		calls.Go(func() (err error) {
			defer run.end(&err)
			verdicts, err := run.look(ctx, look, found)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			check.Looked += len(look.findings)
			if err != nil {
				check.Failed += len(look.findings)
				check.Why = whyNot(err)
				run.lg.WarnContext(ctx, "second look failed: findings stay as they are", "changelist", run.change.Number, "error", err)
				return nil
			}
			apply(verdicts, look, found, &check)
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, nil, err
	}
	run.counts.drop(review.DropRefuted, check.Removed)
	return run.cfg.worthwhile(standing(found), run.counts), &check, nil
}

// whyNot names the reason of a look that failed.
func whyNot(err error) string {
	if over, ok := errors.AsType[overBudgetError](err); ok {
		return string(over.reason)
	}
	return string(failure.ClassOf(err))
}

// A look is the second look at some findings in one part of the change.
type look struct {
	part     int
	findings []int // indexes of candidates
}

// looks groups by part the findings that are to be looked at, in their order.
func (run *run) looks(found []candidate) []look {
	var all []look
	byPart := map[int]int{}
	for i, f := range found {
		if !run.cfg.Falsify.covers(f.Severity) {
			continue
		}
		at, ok := byPart[f.part]
		if !ok {
			at = len(all)
			byPart[f.part] = at
			all = append(all, look{part: f.part})
		}
		all[at].findings = append(all[at].findings, i)
	}
	return all
}

// look asks for the verdicts on some findings.
func (run *run) look(ctx context.Context, l look, found []candidate) ([]verdictOn, error) {
	part := run.parts[l.part]
	text, list := run.text(part), run.listed(l, found)
	answer, err := run.ask(ctx, question{
		system: run.falsify.system,
		user:   func() (string, error) { return run.falsify.user(text, list) },
		shown:  text + list,
		name:   "verdicts",
		schema: verdictsSchema,
		read: func(content string) (json.RawMessage, error) {
			var said struct {
				Verdicts []objection `json:"verdicts"`
			}
			if err := decode(content, "verdicts", run.schemas.verdicts, &said); err != nil {
				return nil, err
			}
			return json.Marshal(judged(said.Verdicts, l, found, part))
		},
	}, 0)
	if err != nil {
		return nil, err
	}
	var verdicts []verdictOn
	if err := json.Unmarshal(answer, &verdicts); err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "read kept verdicts: they are not ours")
	}
	return verdicts, nil
}

// listed shows findings to the second look. They were redacted, and no line of
// theirs can pass for one of ours.
func (run *run) listed(l look, found []candidate) string {
	var out strings.Builder
	for n, i := range l.findings {
		f := found[i]
		fmt.Fprintf(&out, "finding %d\nseverity: %s\ncategory: %s\nlines: %d to %d\n", n+1, f.Severity, f.Category, f.StartLine, f.EndLine)
		for _, text := range []struct{ name, text string }{
			{"path", f.Path}, {"title", f.Title}, {"explanation", f.Explanation}, {"code", f.Quote},
		} {
			out.WriteString(text.name + ":\n")
			short, _ := clip(text.text, maxListedBytes, "text")
			for s := range strings.Lines(short) {
				out.WriteString("| " + visible(strings.TrimRight(s, "\r\n")) + "\n")
			}
		}
	}
	return out.String()
}

// maxListedBytes bounds each text of a finding in a second look.
const maxListedBytes = 1_500

// standing are the candidates that were not removed.
func standing(found []candidate) []candidate {
	var out []candidate
	for _, f := range found {
		if !f.refuted {
			out = append(out, f)
		}
	}
	inOrder(out)
	return out
}
