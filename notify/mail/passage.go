package mail

import "strings"

// A passage is a part of what a model wrote about a finding: prose, or code that
// it fenced or indented.
type passage struct {
	Code bool
	Text string
}

// maxPassages bounds what frames may cost in a mail.
const maxPassages = 10

// passages divides cleaned text. Indented lines are code behind an empty line or a
// colon; otherwise they go on with a list.
func passages(text string) []passage {
	var all []passage
	add := func(code bool, l string) {
		if last := len(all) - 1; last >= 0 && all[last].Code == code || last == maxPassages-1 {
			all[last].Text += "\n" + l
			return
		}
		all = append(all, passage{code, l})
	}
	fenced, before := false, ""
	for l := range strings.SplitSeq(text, "\n") {
		switch {
		case isFence(l):
			fenced = !fenced
		case fenced, (strings.HasPrefix(l, "  ") || strings.HasPrefix(l, "\t")) && mayBeginCode(all, before):
			add(true, l)
		case strings.TrimSpace(l) == "" && len(all) > 0:
			add(all[len(all)-1].Code, "")
		default:
			add(false, l)
		}
		before = strings.TrimSpace(l)
	}
	return tidy(all)
}

func isFence(l string) bool {
	mark, rest, ok := strings.Cut(strings.TrimSpace(l), "```")
	return ok && mark == "" && !strings.Contains(rest, "`")
}

// mayBeginCode reports whether an indented line behind another is code.
func mayBeginCode(all []passage, before string) bool {
	inCode := len(all) > 0 && all[len(all)-1].Code
	return inCode || before == "" || strings.HasSuffix(before, ":")
}

// tidy leaves out what is empty, and the indentation that all lines of code share.
func tidy(all []passage) (kept []passage) {
	for _, p := range all {
		if p.Text = strings.Trim(p.Text, "\n"); strings.TrimSpace(p.Text) == "" {
			continue
		}
		if p.Code {
			p.Text = dedent(strings.ReplaceAll(p.Text, "\t", "    "))
		}
		kept = append(kept, p)
	}
	return kept
}

func dedent(code string) string {
	lines := strings.Split(code, "\n")
	shared := len(code)
	for _, l := range lines {
		if text := strings.TrimLeft(l, " "); text != "" {
			shared = min(shared, len(l)-len(text))
		}
	}
	for i, l := range lines {
		lines[i] = l[min(shared, len(l)):]
	}
	return strings.Join(lines, "\n")
}

// lay writes passages as text, indented by n blanks and code by two more. Code
// keeps its lines.
func lay(n int, all []passage) string {
	var out []string
	for _, p := range all {
		if !p.Code {
			out = append(out, wrap(n, p.Text))
			continue
		}
		indent := strings.Repeat(" ", n+2)
		out = append(out, indent+strings.ReplaceAll(p.Text, "\n", "\n"+indent))
	}
	return strings.Join(out, "\n\n")
}
