package mail

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
	"github.com/criticizer/criticizer/review/plain"
)

// A findingView is the data of one finding in the templates.
type findingView struct {
	Number      int // from 1, in the order of the mail
	Severity    string
	File        string // name of the file, with its lines
	Position    string // path, with its lines if they are known
	Category    string
	Confidence  string
	Anchor      string // where the finding points, if not at a line of the change
	Age         string // new or still open, in a rerun
	Places      []string
	Title       string
	Code        []codeLine
	Explanation []block
	Suggestion  []block
	Fix         []fixLine
	Link        string   // to the code, empty if none is configured
	Disputed    []string // "Marked wrong by ann: closed by the caller"
	Answers     []answer // none if readers cannot answer
}

// An answer is a link by which a reader gives an opinion.
type answer struct{ Opinion, Link string }

// A fixLine is a line of a small diff. Mark is +, - or a blank.
type fixLine struct{ Mark, Text string }

func fixLines(f review.Finding) (lines []fixLine) {
	diff := fix.Diff(f)
	var texts []string
	for _, l := range diff[:min(len(diff), maxQuoteLines)] {
		texts = append(texts, l.Text)
	}
	for i, text := range dedent(texts) {
		lines = append(lines, fixLine{string(diff[i].Mark), plain.Text(text, maxQuoteLine)})
	}
	if rest := more(len(diff)-maxQuoteLines, "line"); rest != "" {
		lines = append(lines, fixLine{" ", "[" + rest + "]"})
	}
	return lines
}

// dedent removes the white space that all lines which are not blank begin with.
func dedent(lines []string) []string {
	indent := func(l string) string { return l[:len(l)-len(strings.TrimLeft(l, " \t"))] }
	shared, first := "", true
	for _, l := range lines {
		own := indent(l)
		switch {
		case own == l:
		case first:
			shared, first = own, false
		default:
			for !strings.HasPrefix(own, shared) {
				shared = shared[:len(shared)-1]
			}
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimPrefix(l, shared)
	}
	return out
}

// A codeLine is a line of quoted code, or one next to it. Number is empty if the lines of the
// quote are not known for certain: a wrong number is worse than none.
type codeLine struct {
	Number, Text string
	Quoted       bool
}

// Numbers returns the numbers beside the code, one per line.
func (v findingView) Numbers() string {
	var all []string
	for _, c := range v.Code {
		all = append(all, c.Number)
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

func newFindingView(f review.Finding) findingView {
	position := post.Position(f.Place())
	v := findingView{
		Severity:    plain.Line(string(f.Severity), maxName),
		Position:    position,
		File:        path.Base(position),
		Category:    strings.ReplaceAll(plain.Line(string(f.Category), maxName), "_", " "),
		Confidence:  fmt.Sprintf("%.0f%%", 100*min(max(f.Confidence, 0), 1)),
		Anchor:      anchors[f.Anchor],
		Title:       plain.Line(f.Title, maxTitle),
		Explanation: splitBlocks(strings.TrimSpace(plain.Text(f.Explanation, maxProse))),
		Suggestion:  splitBlocks(strings.TrimSpace(plain.Text(f.Suggestion, maxProse))),
		Fix:         fixLines(f),
		Code:        quote(f),
		Places:      listed(f.Places, maxPlaces, "place", post.Position),
	}
	if len(v.Fix) > 0 {
		v.Suggestion = nil // the fix says the same, checked
	}
	for _, d := range f.Disputed {
		text := "Marked wrong by " + userName(d.Who)
		if why := plain.Line(d.Note, maxTitle); why != "" {
			text += ": " + why
		}
		v.Disputed = append(v.Disputed, text)
	}
	return v
}

// anchors describes where a finding points that is not at a line of the change.
var anchors = map[review.Anchor]string{
	review.AnchorContext: "code the change does not touch",
	review.AnchorRemoved: "code the change removes",
	review.AnchorFile:    "no line known",
}

// quote returns the quoted lines with the lines around them, without the indentation that all
// share. It numbers them only if there are as many as the finding's range has.
func quote(f review.Finding) (shown []codeLine) {
	text := strings.Trim(strings.ReplaceAll(f.Quote, "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	quoted := strings.Split(text, "\n")
	numbered := f.StartLine > 0 && len(quoted) == f.EndLine-f.StartLine+1
	rest := more(len(quoted)-maxQuoteLines, "line")
	quoted = quoted[:min(len(quoted), maxQuoteLines)]
	before, after := around(f.Before), around(f.After)
	if rest != "" {
		after = nil
	}
	for i, l := range dedent(slices.Concat(before, quoted, after)) {
		c := codeLine{Text: plain.Text(l, maxQuoteLine), Quoted: i >= len(before) && i < len(before)+len(quoted)}
		if numbered {
			c.Number = fmt.Sprint(f.StartLine - len(before) + i)
		}
		shown = append(shown, c)
	}
	if rest != "" {
		shown = append(shown, codeLine{Text: "[" + rest + "]"})
	}
	return shown
}

// around returns the lines before or after a quote.
func around(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

// An unreadGroup has the files that were not reviewed for the same reason.
type unreadGroup struct {
	Reason string
	Count  int
	Paths  []string
}

// unread groups the files with hidden lines by reason, in the order in which the reasons first
// appear. It counts all files and lists at most maxUnread, none without a path.
func unread(c review.Coverage) (groups []unreadGroup) {
	n := 0
	for _, f := range c {
		state, why := f.Worst()
		if state != review.LinesHidden {
			continue
		}
		n++
		reason := plain.Line(string(why), maxName)
		g := slices.IndexFunc(groups, func(v unreadGroup) bool { return v.Reason == reason })
		if g < 0 {
			g = len(groups)
			groups = append(groups, unreadGroup{Reason: reason})
		}
		groups[g].Count++
		if path := plain.Line(f.Path, maxPath); n <= maxUnread && path != "" {
			if lines := f.Hidden(); lines != "" {
				path += ", lines " + lines
			}
			groups[g].Paths = append(groups[g].Paths, path)
		}
	}
	for i, g := range groups {
		if rest := more(g.Count-len(g.Paths), "file"); rest != "" {
			groups[i].Paths = append(g.Paths, rest)
		}
	}
	return groups
}
