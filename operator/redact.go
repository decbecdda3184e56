package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction"
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

Of -jsonl, every line is answered by one line, in order, or refused whole: one
that is not JSON or not UTF-8 or has no id or text ends the run and is named by
its number. Ids are handed back as they are, also if two lines have the same. A
text that is blocked is answered as masked from begin to end, with the class of
the error for a rule.

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
	if *jsonl && *explain {
		return badUsage("-jsonl tells the rules already: leave -explain out")
	}
	pipeline, err := newPipeline(cfg, *hosts, *rules)
	if err != nil {
		return err
	}
	if *jsonl {
		return redactLines(lineRedactor{pipeline, *diff}, c.stdin, c.stdout)
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
	Text *string         `json:"text"`
	Path string          `json:"path"`
}

type outputLine struct {
	ID    json.RawMessage `json:"id"`
	Text  string          `json:"text"`
	Spans [][2]int        `json:"spans"`
	Rules []string        `json:"rules"`
}

// maxLineBytes bounds a line of -jsonl, which has to be read whole.
const maxLineBytes = 256 << 20

// redactLines redacts each line's text for itself and writes its answer before
// it waits for more.
func redactLines(r lineRedactor, stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewReaderSize(stdin, 1<<20)
	out := bufio.NewWriter(stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for n := 1; ; n++ {
		line, readErr := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 && (readErr == nil || errors.Is(readErr, io.EOF)) {
			answer, err := r.redact(line)
			if err != nil {
				return errors.Join(advise(failure.Errorf(failure.InputInvalid, "read line %d: %w", n, err), "correct that line; those before it are answered"), out.Flush())
			}
			if err := encoder.Encode(answer); err != nil {
				return fmt.Errorf("write line %d: %w", n, err)
			}
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return out.Flush()
		case readErr != nil:
			return errors.Join(fmt.Errorf("read line %d: %w", n, readErr), out.Flush())
		case in.Buffered() == 0:
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write line %d: %w", n, err)
			}
		}
	}
}

// readLine reads up to the end of a line that is not too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLineBytes {
			return nil, failure.Errorf(failure.InputInvalid, "it has more than %d bytes", maxLineBytes)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// A lineRedactor answers the lines of -jsonl.
type lineRedactor struct {
	pipeline *redaction.Pipeline
	diff     bool
}

func (r lineRedactor) redact(line []byte) (outputLine, error) {
	in, err := decodeLine(line)
	if err != nil {
		return outputLine{}, err
	}
	out := outputLine{ID: in.ID, Spans: [][2]int{}, Rules: []string{}}
	text, marks, err := r.pipeline.Explain(*in.Text, r.diff)
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
		return in, errors.New("want {\"id\",\"text\",\"path\"}, of which id and text have to be there")
	}
	return in, nil
}

// withoutSurrogates puts U+FFFD in the place of halves of surrogate pairs, which
// some write as three bytes that are not UTF-8. Offsets stay what they are.
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
