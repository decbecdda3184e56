package llm

import (
	"context"
	"math"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
)

// draft returns the result of a run whose calls have all succeeded: the filtered
// findings, and what was read.
func (run *run) draft(ctx context.Context) (review.Draft, error) {
	sortCandidates(run.found)
	found, err := run.dropMarkedWrong(ctx, run.cfg.dropMinor(run.found, run.counts))
	if err != nil {
		return review.Draft{}, err
	}
	found, duplicates := merge(found)
	run.counts.drop(review.DropDuplicate, duplicates)
	found, check, err := run.verify(ctx, found)
	if err != nil {
		return review.Draft{}, err
	}
	run.counts.drop(review.DropOverLimit, len(found)-run.cfg.MaxFindings)
	var final []review.Finding
	for _, c := range found[:min(len(found), run.cfg.MaxFindings)] {
		c.Rule = run.guides.packsOf(c.Path)
		final = append(final, run.checkFix(c.Finding))
	}
	d := review.Draft{
		Record: review.Record{
			Model: run.model, PromptDigest: run.promptDigest(), Usage: run.usage, Anchors: run.counts.Anchors, Dropped: run.counts.Dropped,
			FixesDropped: run.counts.Fixes, Check: check, Proofs: run.proofs, Rules: run.sources,
		},
		Findings: final, Coverage: run.coverage(run.parts), Context: run.context,
	}
	for _, model := range run.cfg.Fallbacks {
		if s := run.switches[model]; s != nil {
			d.Switches = append(d.Switches, *s)
		}
	}
	return d, nil
}

// checkFix checks the replacement of f against what the sealed change has of its file, and
// counts it if it fails. The finding stays.
func (run *run) checkFix(f review.Finding) review.Finding {
	var known fix.Text
	for _, file := range run.change.Files {
		if file.Path.String() == f.Path && known == nil {
			known = fix.Read(file.Diff.String())
		} else if file.Path.String() == f.Path {
			known = fix.Text{} // redaction gave two files the same path
		}
	}
	if len(known) > 0 {
		for _, b := range run.change.Context {
			if b.Path.String() == f.Path {
				known.Add(b.Line, b.Text.String())
			}
		}
	}
	f, why := known.Check(f, run.secrets)
	if why != "" {
		run.counts.Fixes[why]++
	}
	return f
}

// secrets returns the number of placeholders in s after redaction, math.MaxInt if it
// cannot be redacted.
func (run *run) secrets(s string) int {
	masked, err := run.guard.String(s)
	if err != nil {
		return math.MaxInt
	}
	return len(redactedMark.FindAllStringIndex(masked.String(), -1))
}

// coverage says what became of each changed line, if the model has read the given parts.
func (run *run) coverage(read []question) review.Coverage {
	covered := make(review.Coverage, len(run.change.Files))
	at := map[*file]*review.FileCoverage{}
	for i, f := range run.change.Files {
		covered[i] = review.NewFileCoverage(f.Path.String(), f.Diff.String(), f.Skipped)
		at[run.files[i]] = &covered[i]
	}
	mark := func(c chunk, state review.LineState, why review.SkipReason) {
		for _, s := range c {
			for _, h := range s.hunks {
				for _, l := range h.lines {
					switch f := at[s.file]; {
					case state == review.LinesHidden:
						f.Mark(l.row, l.row, state, why)
					case l.cut:
						f.Mark(l.row, l.row, review.LinesHidden, review.SkipLongLine)
					case redactedMark.MatchString(l.text):
						f.Mark(l.row, l.row, review.LinesMasked, "")
					default:
						f.Mark(l.row, l.row, state, "")
					}
				}
			}
		}
	}
	for _, q := range read {
		mark(q.part, review.LinesShown, "")
	}
	for _, o := range run.omitted {
		mark(o.part, review.LinesHidden, o.why)
	}
	for i, f := range run.change.Files {
		for _, h := range f.Hidden {
			covered[i].Mark(h.First, h.Last, review.LinesHidden, review.SkipMaskedCode)
		}
		if f.Charset != "" && run.files[i] != nil { // only lines with other characters than ASCII were guessed
			for l := range review.DiffLines(f.Diff.String()) {
				if strings.ContainsFunc(l.Text, func(r rune) bool { return r > unicode.MaxASCII }) {
					covered[i].Mark(l.Row, l.Row, review.LinesHidden, review.SkipGuessed)
				}
			}
		}
		covered[i].Join()
	}
	return covered
}
