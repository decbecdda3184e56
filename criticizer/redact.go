package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/p4/local"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

func (c *app) redactCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "redact", Short: "Print standard input as a model would see it",
		Long: `Prints the text on standard input as a model would see it. A diff is recognized;
its prefixes and headers are kept. The section redaction of the configuration
applies as in a review.

With --before and --after, or --git, it prints diffs as a review sends them: the
whole texts decide what is masked.

With --jsonl, every line {"id","text","path"} is answered by one line
{"id","spans","rules"}, in order. The path gives the language of the text. A
line that is not JSON, not UTF-8, or has no id or text ends the run; the error
names its number. IDs are returned unchanged. A text that is rejected is answered
as masked from begin to end, and its rule is the class of the error.`,
		Example: `  criticizer redact --explain < file.go
  git diff | criticizer redact --diff
  criticizer redact --git main..HEAD`,
		Annotations: map[string]string{noProgress: "yes", rawOutput: "yes"},
	}
	var r redactor
	flags := cmd.Flags()
	flags.BoolVar(&r.diff, "diff", false, "read the input as a diff")
	flags.BoolVar(&r.explain, "explain", false, "print each masked range and near miss instead, with its rule")
	flags.BoolVar(&r.jsonl, "jsonl", false, "read and write JSON lines")
	flags.StringSliceVar(&r.rules, "rules", nil, "add the rules of `FILES`, separated by commas")
	flags.StringVar(&r.before, "before", "", "with --after: read `FILE` as the old text, and print the diff")
	flags.StringVar(&r.after, "after", "", "read `FILE` as the new text, and print the diff")
	flags.StringVar(&r.gitRange, "git", "", "print the diffs of the git `RANGE` A..B")
	for _, alone := range []string{"diff", "explain", "jsonl"} {
		for _, whole := range []string{"before", "after", "git"} {
			cmd.MarkFlagsMutuallyExclusive(alone, whole)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context(), c) }
	return cmd
}

// A redactor redacts standard input.
type redactor struct {
	rules                []string
	diff, explain, jsonl bool
	before, after        string // names of files
	gitRange             string
	pipeline             *redaction.Pipeline
}

func (r *redactor) run(ctx context.Context, c *app) (err error) {
	if r.jsonl && r.explain {
		return badUsage("--jsonl prints the rules already: omit --explain")
	}
	if r.pipeline, err = r.newPipeline(c); err != nil {
		return err
	}
	if r.gitRange != "" || r.before != "" || r.after != "" {
		read := r.readFiles
		if r.gitRange != "" {
			read = func() ([]local.Edit, error) { return changedFiles(ctx, r.gitRange) }
		}
		files, err := read()
		if err != nil {
			return err
		}
		return r.redactFiles(files, c.stdout)
	}
	if r.jsonl {
		return r.redactLines(c.stdin, c.stdout)
	}
	input, err := io.ReadAll(c.stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	text, masked, nearMisses, err := r.pipeline.Explain(string(input), "", r.diff)
	if err != nil {
		return err
	}
	if r.explain {
		return printMarks(c.stdout, append(masked, nearMisses...))
	}
	_, err = io.WriteString(c.stdout, text.String())
	return err
}

// newPipeline returns the pipeline of a review with this configuration, and with the rules of the
// flag.
func (r *redactor) newPipeline(c *app) (*redaction.Pipeline, error) {
	cfg, err := c.configWithKey()
	if err != nil {
		return nil, err
	}
	cfg.Redaction.RuleFiles = append(cfg.Redaction.RuleFiles, r.rules...)
	file := settings.Program.File(c.configPath, c.getenv)
	if _, err := os.Stat(file); err == nil {
		fmt.Fprintf(c.stderr, "redaction as configured in %s\n", printable(file))
	}
	return cfg.NewPipeline(cfg.Redaction.Key)
}

// printMarks prints a line for each range: where it is, what is masked, and which
// rule, place, classifier and example explain that.
func printMarks(w io.Writer, marks []redaction.Mark) error {
	for _, m := range marks {
		var line strings.Builder
		fmt.Fprintf(&line, "line %d bytes %d-%d %s: %s", m.Line, m.Start, m.End, cmp.Or(m.Class, "not masked"), m.Rule)
		for _, detail := range []struct{ name, text string }{{"place", m.Place}, {"classifier", m.Classifier}, {"example", strings.ReplaceAll(m.Example, "\n", "⏎")}} {
			if detail.text != "" {
				fmt.Fprintf(&line, "; %s: %s", detail.name, detail.text)
			}
		}
		if _, err := fmt.Fprintln(w, &line); err != nil {
			return err
		}
	}
	return nil
}

type inputLine struct {
	ID   json.RawMessage `json:"id"`
	Text *string         `json:"text"`
	Path string          `json:"path"`
}

type outputLine struct {
	ID    json.RawMessage `json:"id"`
	Text  string          `json:"text"`
	Spans [][2]int        `json:"spans"`
	Rules []string        `json:"rules"`
}

// maxLineBytes bounds a line of --jsonl, which is read into memory.
const maxLineBytes = 256 << 20

// redactLines answers each line before it reads the next one.
func (r *redactor) redactLines(stdin io.Reader, stdout io.Writer) error {
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxLineBytes)
	encoder := json.NewEncoder(stdout)
	encoder.SetEscapeHTML(false)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		answer, err := r.redactLine(lines.Bytes())
		if err != nil {
			return advise(failure.Errorf(failure.InputInvalid, "read line %d: %w", n, err), "correct that line; the lines before it are answered")
		}
		if err := encoder.Encode(answer); err != nil {
			return fmt.Errorf("write line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return failure.Errorf(failure.InputInvalid, "read line %d: %w", n, err)
	}
	return nil
}

func (r *redactor) redactLine(line []byte) (outputLine, error) {
	in, err := decodeLine(line)
	if err != nil {
		return outputLine{}, err
	}
	out := outputLine{ID: in.ID, Spans: [][2]int{}, Rules: []string{}}
	text, marks, _, err := r.pipeline.Explain(*in.Text, in.Path, r.diff)
	if err != nil {
		out.Spans, out.Rules = append(out.Spans, [2]int{0, len(*in.Text)}), append(out.Rules, string(failure.ClassOf(err)))
		return out, nil
	}
	out.Text = text.String()
	for _, m := range marks {
		out.Spans = append(out.Spans, [2]int{m.Start, m.End})
		out.Rules = append(out.Rules, m.Class+": "+m.Rule)
	}
	return out, nil
}

func decodeLine(line []byte) (in inputLine, err error) {
	line = withoutSurrogates(line)
	if !utf8.Valid(line) {
		return in, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return in, fmt.Errorf("want {\"id\",\"text\",\"path\"} in JSON: %w", err)
	}
	if in.Text == nil || len(in.ID) == 0 || string(in.ID) == "null" {
		return in, errors.New("id and text are required")
	}
	return in, nil
}

// withoutSurrogates replaces each half of a surrogate pair by U+FFFD: some programs
// write it as three bytes that are not UTF-8. Both take three bytes, so offsets
// stay valid.
func withoutSurrogates(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	line = bytes.Clone(line)
	for i := 0; i+2 < len(line); i++ {
		if line[i] == 0xED && line[i+1] >= 0xA0 && line[i+1] <= 0xBF && line[i+2]&0xC0 == 0x80 {
			copy(line[i:], "\uFFFD")
		}
	}
	return line
}

// redactFiles prints the diffs of files as a model would see them. As in a review, the
// whole texts decide what is masked.
func (r *redactor) redactFiles(files []local.Edit, stdout io.Writer) error {
	var change review.Change
	for _, e := range files {
		e.Action = review.ActionEdit // what a deleted file had is shown, too
		f := e.File("")
		if f.Skipped != "" {
			return failure.Errorf(failure.TooLarge, "redact %s: its texts have more than %d bytes: a review skips such a file", e.Path, review.MaxWhole)
		}
		change.Files = append(change.Files, f)
	}
	redacted, err := r.pipeline.Change(change)
	if err != nil {
		return err
	}
	for _, f := range redacted.Files {
		if _, err := fmt.Fprintf(stdout, "--- %s\n+++ %[1]s\n%s", f.Path, f.Diff); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the files of --before and --after.
func (r *redactor) readFiles() ([]local.Edit, error) {
	var texts [2]string
	for i, name := range []string{r.before, r.after} {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(data)
	}
	return []local.Edit{{Path: cmp.Or(r.after, r.before), Before: texts[0], After: texts[1]}}, nil
}
