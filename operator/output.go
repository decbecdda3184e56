package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// A format is a value of --output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
)

// print writes v as JSON, or else what table writes.
func (c *console) print(v any, table func(io.Writer)) error {
	if c.format == formatJSON {
		return writeJSON(c.stdout, v)
	}
	table(c.stdout)
	return nil
}

// printRows writes v as JSON, or else rows below a header; empty replaces a table
// without rows.
func (c *console) printRows(v any, empty string, header []string, rows [][]string) error {
	return c.print(v, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, empty)
			return
		}
		writeTable(w, "", slices.Insert(rows, 0, header))
	})
}

// done reports what a command has changed.
func (c *console) done(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return c.print(map[string]string{"message": message}, func(w io.Writer) { fmt.Fprintln(w, message) })
}

// note prints a line that only the table format has.
func (c *console) note(format string, args ...any) {
	if c.format != formatJSON {
		fmt.Fprintf(c.stdout, format+"\n", args...)
	}
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// row returns the cells of one row of a table.
func row(cells ...any) []string {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	return texts
}

// writeTable prints rows as aligned columns, each row indented.
func writeTable(w io.Writer, indent string, rows [][]string) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		last := len(row) - 1
		for last > 0 && row[last] == "" { // no blanks at the end of a line
			last--
		}
		fmt.Fprintln(out, indent+printable(strings.Join(row[:last+1], "\t")))
	}
	_ = out.Flush()
}

// printable replaces control characters, so that text from outside cannot
// control the operator's terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n"+by)
}

// age formats a duration in at most two units.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// stampIf formats a time that may be unknown.
func stampIf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return stamp(*t)
}

func reviewName(cl review.Changelist, v review.Version) string {
	return fmt.Sprintf("changelist %d v%d", cl, v)
}

// byWhom names who did something, and the reason if one was given.
func byWhom(who, why string) string {
	return "by " + cmp.Or(who, "an unknown person") + ": " + printable(cmp.Or(why, "no reason given"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
