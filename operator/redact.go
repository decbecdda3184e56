package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/secret"
)

const redactUsage = `usage: criticizer redact [flags] < file

Prints what a model would see of the text on standard input. A diff is
recognised; its prefixes and headers stay as they are.

CRITICIZER_REDACTION_KEY (or _FILE) keys the tags of the placeholders; without
it they are of a key made for this run.

flags:
  -diff           read the input as a diff whatever it looks like
  -explain        print a line per masked range instead: line, bytes, class, rule
  -jsonl          read {"id","text","path"} lines, write {"id","spans","rules"} lines
  -emails         mask e-mail addresses too
  -ips            mask addresses of private networks too
  -hosts LIST     mask hosts under these suffixes too, separated by commas
  -rules FILE     add the token formats of a file
  -max-bytes N    block an input of more bytes

examples:
  criticizer redact -explain < file.go
  git diff | criticizer redact -diff

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// redact implements criticizer redact.
func redact(_ context.Context, args []string, c console) error {
	flags := c.flags("redact", redactUsage)
	diff := flags.Bool("diff", false, "")
	explain := flags.Bool("explain", false, "")
	jsonl := flags.Bool("jsonl", false, "")
	var cfg redaction.Config
	flags.BoolVar(&cfg.Emails, "emails", false, "")
	flags.BoolVar(&cfg.InternalIPs, "ips", false, "")
	flags.IntVar(&cfg.MaxBytes, "max-bytes", 0, "")
	hosts := flags.String("hosts", "", "")
	rules := flags.String("rules", "", "")
	if err := flags.parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return badUsage("redact takes no arguments, only standard input: got %q", flags.Arg(0))
	}
	pipeline, err := newPipeline(cfg, *hosts, *rules)
	if err != nil {
		return err
	}
	if *jsonl {
		return redactLines(pipeline, c.stdin, c.stdout)
	}
	input, err := io.ReadAll(c.stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	text, marks, err := pipeline.Explain(string(input), *diff)
	if err != nil {
		return err
	}
	if *explain {
		return printMarks(c.stdout, marks)
	}
	_, err = io.WriteString(c.stdout, text.String())
	return err
}

func newPipeline(cfg redaction.Config, hosts, rulesFile string) (*redaction.Pipeline, error) {
	if hosts != "" {
		cfg.HostSuffixes = strings.Split(hosts, ",")
	}
	if rulesFile != "" {
		data, err := os.ReadFile(rulesFile)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "read rules: %w", err)
		}
		cfg.Rules = string(data)
	}
	key, err := secret.Lookup("CRITICIZER_REDACTION_KEY", os.Getenv)
	if err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	if !key.IsSet() {
		key = secret.New(rand.Text())
	}
	cfg.Key = key
	return redaction.New(cfg)
}

func printMarks(w io.Writer, marks []redaction.Mark) error {
	for _, m := range marks {
		if _, err := fmt.Fprintf(w, "line %d bytes %d-%d %s: %s\n", m.Line, m.Start, m.End, m.Class, m.Rule); err != nil {
			return err
		}
	}
	return nil
}

type inputLine struct {
	ID   json.RawMessage `json:"id"`
	Text string          `json:"text"`
}

type outputLine struct {
	ID    json.RawMessage `json:"id"`
	Text  string          `json:"text"`
	Spans [][2]int        `json:"spans"`
	Rules []string        `json:"rules"`
}

// redactLines redacts each line's text for itself. A text that is blocked is
// masked as a whole.
func redactLines(p *redaction.Pipeline, stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReaderSize(stdin, 1<<20)
	out := bufio.NewWriter(stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for n := 1; ; n++ {
		line, readErr := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			answer, err := redactLine(p, line)
			if err != nil {
				return failure.Errorf(failure.InputInvalid, "read line %d: %w", n, err)
			}
			if err := encoder.Encode(answer); err != nil {
				return fmt.Errorf("write line %d: %w", n, err)
			}
		}
		if readErr == io.EOF {
			return out.Flush()
		}
		if readErr != nil {
			return fmt.Errorf("read standard input: %w", readErr)
		}
	}
}

func redactLine(p *redaction.Pipeline, line []byte) (outputLine, error) {
	var in inputLine
	if err := json.Unmarshal(line, &in); err != nil {
		return outputLine{}, fmt.Errorf("want {\"id\",\"text\",\"path\"} in JSON: %w", err)
	}
	out := outputLine{ID: in.ID, Spans: [][2]int{}, Rules: []string{}}
	text, marks, err := p.Explain(in.Text, false)
	if err != nil {
		out.Spans, out.Rules = append(out.Spans, [2]int{0, len(in.Text)}), append(out.Rules, string(failure.ClassOf(err)))
		return out, nil
	}
	out.Text = text.String()
	for _, m := range marks {
		out.Spans = append(out.Spans, [2]int{m.Start, m.End})
		out.Rules = append(out.Rules, m.Class+": "+m.Rule)
	}
	return out, nil
}
