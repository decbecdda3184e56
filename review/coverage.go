package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A LineState is what became of changed lines in a review.
type LineState string

// The states of changed lines. They are wire format.
const (
	LinesShown    LineState = "shown"     // the model received them as they are
	LinesMasked   LineState = "masked"    // the model received them with placeholders for tokens and short literals
	LinesCredited LineState = "credited"  // copied without edits from a revision that a review has read
	LinesByDesign LineState = "by design" // path, type or action decide that they are not read
	LinesHidden   LineState = "hidden"    // nothing is known about them
)

// Lines are consecutive changed lines of one file in the same state.
type Lines struct {
	// First and Last are lines of the new content; a removed line counts as the line after
	// it. Both are 0 for a file that is in one state as a whole.
	First int        `json:"first,omitempty"`
	Last  int        `json:"last,omitempty"`
	State LineState  `json:"state"`
	Why   SkipReason `json:"why,omitempty"` // empty for lines that the model received

	row int // line of the diff, until the lines are joined
}

// A FileCoverage has the changed lines of one file.
type FileCoverage struct {
	Path  string  `json:"path"` // empty if the reader may not know it
	Lines []Lines `json:"lines"`
}

// A Coverage lists what a review has read: all files of a change with their changed lines.
// Each stage adds what it did to lines. [Report.Judge] makes the outcome from it, and all
// outputs print its [Tally].
type Coverage []FileCoverage

// NewFileCoverage returns the coverage of a file before a model reads it: the changed lines
// of its diff are hidden. A file with a reason is in one state.
func NewFileCoverage(path, diff string, skipped SkipReason) FileCoverage {
	if diff == "" || skipped != "" {
		skipped = cmp.Or(skipped, SkipUnchanged)
		return FileCoverage{path, []Lines{{State: skipped.state(), Why: skipped}}}
	}
	f := FileCoverage{Path: path}
	for l := range DiffLines(diff) {
		if l.Mark == '+' || l.Mark == '-' {
			f.Lines = append(f.Lines, Lines{First: l.Number, Last: l.Number, State: LinesHidden, Why: SkipNotShown, row: l.Row})
		}
	}
	return f
}

// state returns the state of a file that is skipped for s.
func (s SkipReason) state() LineState {
	switch s {
	case SkipDeleted, SkipUnchanged, SkipLineEnds, SkipBinary, SkipExcluded, SkipVendored, SkipLockFile, SkipGenerated:
		return LinesByDesign
	case SkipIntegrated:
		return LinesCredited
	}
	return LinesHidden
}

// Mark sets the state of the changed lines among the lines first to last of the diff.
func (f *FileCoverage) Mark(first, last int, state LineState, why SkipReason) {
	i, _ := slices.BinarySearchFunc(f.Lines, first, func(l Lines, row int) int { return cmp.Compare(l.row, row) })
	for ; i < len(f.Lines) && f.Lines[i].row <= last; i++ {
		f.Lines[i].State, f.Lines[i].Why = state, why
	}
}

// Join makes one range of consecutive changed lines in the same state.
func (f *FileCoverage) Join() {
	var joined []Lines
	for _, l := range f.Lines {
		if n := len(joined) - 1; n >= 0 && joined[n].State == l.State && joined[n].Why == l.Why {
			joined[n].Last = l.Last
			continue
		}
		joined = append(joined, l)
	}
	f.Lines = joined
}

// Worst returns the state of the file: hidden if one of its lines is, and why.
func (f FileCoverage) Worst() (LineState, SkipReason) {
	worst := Lines{State: LinesShown}
	for _, l := range f.Lines {
		if l.State == LinesHidden {
			return l.State, l.Why
		}
		if l.State != LinesShown {
			worst = l
		}
	}
	return worst.State, worst.Why
}

// Hidden returns the hidden lines, such as "12-14, 20", or "" if the whole file is.
func (f FileCoverage) Hidden() string {
	var ranges []string
	whole := true
	for _, l := range f.Lines {
		switch {
		case l.State != LinesHidden:
			whole = false
		case l.First < l.Last:
			ranges = append(ranges, fmt.Sprintf("%d-%d", l.First, l.Last))
		default:
			ranges = append(ranges, fmt.Sprint(l.First))
		}
	}
	const maxRanges = 5
	if len(ranges) > maxRanges {
		ranges = append(ranges[:maxRanges], "...")
	}
	if whole {
		return ""
	}
	return strings.Join(ranges, ", ")
}

// A Tally counts the files of a [Coverage]. It holds no content: rows and histories have it.
type Tally struct {
	Files int `json:"files"`
	// Read is the number of files whose changed lines were all shown or masked, and Begun
	// the number of files of which some were.
	Read  int `json:"read"`
	Begun int `json:"begun"`
	// Rest counts the other files by their worst state, in the order of the change.
	Rest []TallyRow `json:"rest,omitempty"`
	// Reason is as in a [Report].
	Reason string `json:"reason,omitempty"`
}

// A TallyRow counts files in the same state for the same reason.
type TallyRow struct {
	State LineState  `json:"state"`
	Why   SkipReason `json:"why"`
	Files int        `json:"files"`
}

// Tally counts the files of c.
func (c Coverage) Tally() Tally {
	t := Tally{Files: len(c)}
	for _, f := range c {
		isRead := func(l Lines) bool { return l.State == LinesShown || l.State == LinesMasked }
		if slices.ContainsFunc(f.Lines, isRead) {
			t.Begun++
		}
		state, why := f.Worst()
		if isRead(Lines{State: state}) {
			t.Read++
			continue
		}
		i := slices.IndexFunc(t.Rest, func(r TallyRow) bool { return r.State == state && r.Why == why })
		if i < 0 {
			i = len(t.Rest)
			t.Rest = append(t.Rest, TallyRow{State: state, Why: why})
		}
		t.Rest[i].Files++
	}
	return t
}

// In returns how many files are in the state, and for which reasons.
func (t Tally) In(state LineState) (files int, reasons string) {
	var parts []string
	for _, r := range t.Rest {
		if r.State == state {
			files += r.Files
			parts = append(parts, fmt.Sprintf("%s (%d)", r.Why, r.Files))
		}
	}
	return files, strings.Join(parts, ", ")
}

// Text says what was reviewed, in the words of all outputs.
func (t Tally) Text() string {
	noun := "files"
	if t.Files == 1 {
		noun = "file"
	}
	said := fmt.Sprintf("%d of %d %s reviewed in full.", t.Read, t.Files, noun)
	if t.Read == t.Files && t.Reason == "" {
		said = fmt.Sprintf("%d %s reviewed, which is the whole change.", t.Files, noun)
	}
	if _, reasons := t.In(LinesHidden); reasons != "" {
		said += " Nothing is known about the rest: " + reasons + "."
	}
	return said
}

// Aside says which files were not read although nothing is missing, or "".
func (t Tally) Aside() string {
	var parts []string
	if _, reasons := t.In(LinesByDesign); reasons != "" {
		parts = append(parts, "Not read by design: "+reasons+".")
	}
	if _, reasons := t.In(LinesCredited); reasons != "" {
		parts = append(parts, "Reviewed before: "+reasons+".")
	}
	return strings.Join(parts, " ")
}
