// Package operator is what the commands of operators have in common: how they print tables, times and
// JSON, who the operator is, and the reasons that go into the audit log. doctor.go runs the checks of
// their doctors.
package operator

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review/plain"
)

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// Row returns the cells of a row of a table.
func Row(cells ...any) []string {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	return texts
}

// WriteTable prints rows as aligned columns, each row indented. Text from outside cannot control the
// operator's terminal, nor begin a row or a column: invisible characters are shown, and a cell is one line.
func WriteTable(w io.Writer, indent string, rows [][]string) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		last := len(row) - 1
		for last > 0 && row[last] == "" { // no blanks at the end of a line
			last--
		}
		cells := make([]string, last+1)
		for i, cell := range row[:last+1] {
			cells[i] = strings.Join(strings.Fields(plain.Show(cell)), " ")
		}
		fmt.Fprintln(out, indent+strings.Join(cells, "\t"))
	}
	_ = out.Flush()
}

// Age formats a duration in at most two units.
func Age(d time.Duration) string {
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

// Stamp formats a time.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// StampIf formats a time that may be unknown.
func StampIf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return Stamp(*t)
}

// Name names the person who runs the command. It is not proof: the audit log records the
// database login beside it.
func Name(getenv func(string) string) string {
	name := getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return cmp.Or(name, "unknown") + "@" + cmp.Or(host, "unknown")
}

// maxStatement is the most bytes of a reason or note.
const maxStatement = 1000

// Statement checks a text that is stored in the audit log, for reviews also in Temporal's history,
// and returns it on one line. It rejects secrets.
func Statement(flag, text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	pipeline, err := redaction.New(redaction.Config{Key: secret.New(rand.Text())})
	if err != nil {
		return "", err
	}
	redacted, err := pipeline.String(text)
	switch {
	case text == "":
		return "", cli.Advise(fmt.Errorf("--%s is empty", flag), fmt.Sprintf("write what was done and where it is recorded, such as --%s \"INC-42: key renewed\"", flag))
	case len(text) > maxStatement:
		return "", cli.Advise(fmt.Errorf("--%s has %d bytes, more than %d", flag, len(text), maxStatement), "name the ticket and put the details there")
	case err != nil || redacted.String() != text:
		return "", cli.Advise(fmt.Errorf("--%s seems to contain a secret", flag), "remove it: the text is kept in the audit log")
	}
	return text, nil
}

// StatementFlag adds a flag whose text goes into the audit log, and checks the text before
// cmd runs. Without a preset, the flag is required.
func StatementFlag(cmd *cobra.Command, flag, preset, usage string) *string {
	text := cmd.Flags().String(flag, preset, usage)
	if preset == "" {
		_ = cmd.MarkFlagRequired(flag) // it exists
	}
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		*text, err = Statement(flag, *text)
		return err
	}
	return text
}
