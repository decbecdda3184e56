package mail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// A findingView is one finding as the templates show it.
type findingView struct {
	Severity    string
	Place       string // path, with its lines where they are known
	Category    string
	Confidence  string
	Anchor      string // what it is about, if that is no line of the change
	Age         string // new or still open, in a rerun
	Places      []string
	PlacesMore  string // "3 more places", if some are not listed
	Title       string
	Code        []codeLine
	CodeCut     string // "3 more lines", if some of the quote are not shown
	Explanation []passage
	Suggestion  []passage
	Answer      answerView
}

// An answerView is how a reader says what they think of a finding.
type answerView struct {
	Command string // empty in reports of earlier releases
	Useful  string // a link, empty if none is configured
	Wrong   string // likewise
}

func newAnswerView(token string, links review.FeedbackLinks) answerView {
	if token == "" {
		return answerView{}
	}
	return answerView{
		Command: review.FeedbackCommand(token, review.OpinionUseful+"|"+review.OpinionWrong),
		Useful:  links.To(token, review.OpinionUseful),
		Wrong:   links.To(token, review.OpinionWrong),
	}
}

// A codeLine is a line of quoted code. Number is empty where the lines of the
// quote are not known: a wrong number is worse than none.
type codeLine struct{ Number, Text string }

func newFindingView(f review.Finding) findingView {
	v := findingView{
		Severity:    line(string(f.Severity), maxName),
		Place:       place(f),
		Category:    strings.ReplaceAll(line(string(f.Category), maxName), "_", " "),
		Confidence:  fmt.Sprintf("%.0f%%", 100*min(max(f.Confidence, 0), 1)),
		Anchor:      anchors[f.Anchor],
		Title:       line(f.Title, maxTitle),
		Explanation: passages(strings.TrimSpace(block(f.Explanation, maxProse))),
		Suggestion:  passages(strings.TrimSpace(block(f.Suggestion, maxProse))),
	}
	v.Places, v.PlacesMore = otherPlaces(f)
	v.Code, v.CodeCut = quote(f)
	return v
}

func place(f review.Finding) string {
	path := line(f.Path, maxPath)
	switch {
	case f.StartLine < 1:
		return path
	case f.EndLine <= f.StartLine:
		return fmt.Sprintf("%s:%d", path, f.StartLine)
	}
	return fmt.Sprintf("%s:%d-%d", path, f.StartLine, f.EndLine)
}

// maxPlaces bounds the other places of a finding that are listed.
const maxPlaces = 10

// otherPlaces lists where else a finding applies, and how many more there are.
func otherPlaces(f review.Finding) (places []string, rest string) {
	for _, p := range f.Places[:min(len(f.Places), maxPlaces)] {
		places = append(places, place(review.Finding{Path: p.Path, StartLine: p.StartLine, EndLine: p.EndLine}))
	}
	return slices.Clip(places), more(len(f.Places)-len(places), "place")
}

// anchors says of findings that are not at a line of the change what they are
// about.
var anchors = map[review.Anchor]string{
	review.AnchorContext: "code the change does not touch",
	review.AnchorRemoved: "code the change removes",
	review.AnchorFile:    "no line known",
}

// quote numbers the quoted lines, provided that they are as many as the
// finding's range says.
func quote(f review.Finding) (shown []codeLine, cut string) {
	text := strings.Trim(strings.ReplaceAll(f.Quote, "\r\n", "\n"), "\n")
	if text == "" {
		return nil, ""
	}
	lines := strings.Split(text, "\n")
	numbered := f.StartLine > 0 && len(lines) == f.EndLine-f.StartLine+1
	for i, l := range lines[:min(len(lines), maxQuoteLines)] {
		c := codeLine{Text: strings.ReplaceAll(block(l, maxQuoteLine), "\t", "    ")}
		if numbered {
			c.Number = fmt.Sprint(f.StartLine + i)
		}
		shown = append(shown, c)
	}
	return shown, more(len(lines)-len(shown), "line")
}

// An omissionView lists files that were not reviewed for the same reason.
type omissionView struct {
	Reason string
	Count  int
	Paths  []string
}

// omissions groups files by reason, in the order the reasons first appear, and
// lists at most maxOmissions of them; the counts are of all.
func omissions(all []review.Omission) (groups []omissionView, withheld string) {
	for i, o := range all {
		reason := line(string(o.Reason), maxName)
		g := slices.IndexFunc(groups, func(v omissionView) bool { return v.Reason == reason })
		if g < 0 {
			g = len(groups)
			groups = append(groups, omissionView{Reason: reason})
		}
		groups[g].Count++
		if i < maxOmissions {
			groups[g].Paths = append(groups[g].Paths, line(o.Path, maxPath))
		}
	}
	return groups, more(len(all)-maxOmissions, "file")
}
