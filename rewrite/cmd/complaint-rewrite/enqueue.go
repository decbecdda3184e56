package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (a *app) enqueue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enqueue --file FILE",
		Short: "Enqueue the jobs of a file, all of them or none",
		Long: `Enqueue the jobs of a file that holds one JSON object per line. If a line is
invalid, nothing is enqueued. A job that exists is not changed. With --json it prints one
object per job.`,
		Example: `  complaint-rewrite enqueue --file jobs.jsonl`,
		Args:    cobra.NoArgs, // the usage line has a flag
	}
	file := fileFlag(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == "" {
			return badUsage("enqueue needs --file FILE")
		}
		c, err := a.settings("allow_cleartext", "database", "keyset")
		if err != nil {
			return err
		}
		lines, err := readLines(*file)
		if err != nil {
			return err
		}
		texts, err := c.texts("message", nil)
		if err != nil {
			return err
		}
		orders := make([]rewrite.SealedOrder, len(lines))
		for i, line := range lines {
			if orders[i], err = line.seal(texts); err != nil {
				return err
			}
		}
		db, err := c.open(cmd.Context(), store.RoleBackend)
		if err != nil {
			return err
		}
		defer db.Close()
		receipts, err := db.Enqueue(cmd.Context(), orders)
		if err != nil {
			return fmt.Errorf("nothing was enqueued: %w", err)
		}
		created, out := 0, json.NewEncoder(cmd.OutOrStdout())
		for _, r := range receipts {
			if r.Created {
				created++
			}
			if a.json {
				if err := out.Encode(r); err != nil {
					return err
				}
			}
		}
		if !a.json {
			fmt.Fprintf(cmd.OutOrStdout(), "enqueued %d jobs; %d existed already\n", created, len(receipts)-created)
		}
		return nil
	}
	return cmd
}

func (a *app) seal() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seal",
		Short: "Validate an order and encrypt its texts for complaint_rewrite.enqueue",
		Long: `Reads an order with its texts, one JSON object as enqueue reads it, and prints the
argument of the SQL function complaint_rewrite.enqueue: the validated order with the
encrypted texts.`,
	}
	file := fileFlag(cmd, "-")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.settings("keyset")
		if err != nil {
			return err
		}
		body, err := readFile(*file)
		if err != nil {
			return err
		}
		line, err := parseLine(body)
		if err != nil {
			return fmt.Errorf("%s: %w", *file, err)
		}
		texts, err := c.texts("message", nil)
		if err != nil {
			return err
		}
		sealed, err := line.seal(texts)
		if err != nil {
			return err
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(sealed)
	}
	return cmd
}

func (a *app) result() *cobra.Command {
	return &cobra.Command{
		Use:   "result JOB_ID",
		Short: "Print the rewritten text of a completed job",
		Args:  oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.settings("allow_cleartext", "database", "keyset")
			if err != nil {
				return err
			}
			db, err := c.open(cmd.Context(), store.RoleBackend)
			if err != nil {
				return err
			}
			defer db.Close()
			sealed, err := db.Result(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			texts, err := c.texts("result", nil)
			if err != nil {
				return err
			}
			text, err := texts.Open(sealed.ID, sealed.Body)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), string(text))
			}
			return err
		},
	}
}

func fileFlag(cmd *cobra.Command, value string) *string {
	return cmd.Flags().StringP("file", "f", value, "input `FILE`; - is standard input")
}

// readFile reads a file, or standard input if its name is -.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// texts returns the encrypted texts of a namespace, message or result; without a queue it
// encrypts and decrypts only.
func (c *settings) texts(namespace artifact.Namespace, queue *store.Queue) (*artifact.Store, error) {
	return artifact.New(store.Texts{Queue: queue}, artifact.Config{Namespace: namespace, Raw: true, Keyset: c.Keyset, TTL: store.TTL, KEK: c.kek()})
}

// maxMessage is the size limit of a message in bytes: a complaint has a few
// sentences.
const maxMessage = 64 << 10

// A message is the text of a sender with the preferences of its recipient.
type message struct {
	Text        string            `json:"text"`
	Preferences map[string]string `json:"preferences"`
}

func (m message) validate() error {
	switch {
	case strings.TrimSpace(m.Text) == "":
		return errors.New("text is empty: write the message")
	case len(m.Text) > maxMessage:
		return fmt.Errorf("text has %d bytes: want at most %d", len(m.Text), maxMessage)
	case !utf8.ValidString(m.Text):
		return errors.New("text is not UTF-8")
	}
	for name := range m.Preferences {
		if !rewrite.PreferenceName.MatchString(name) {
			return errors.New("the name of a preference has other characters than letters, digits and _.-, or more than 64")
		}
	}
	return nil
}

// A jobLine is one line of a job file.
type jobLine struct {
	rewrite.Order
	message
	number int
}

// seal encrypts the texts for the worker.
func (l jobLine) seal(texts *artifact.Store) (sealed rewrite.SealedOrder, err error) {
	sealed.Order, sealed.Line = l.Order, l.number
	if sealed.Text.ID, sealed.Text.Body, err = texts.Seal([]byte(l.Text)); err != nil || len(l.Preferences) == 0 {
		return sealed, err
	}
	preferences, err := json.Marshal(l.Preferences)
	if err != nil {
		return sealed, err
	}
	sealed.Preferences = new(rewrite.SealedText)
	sealed.Preferences.ID, sealed.Preferences.Body, err = texts.Seal(preferences)
	return sealed, err
}

// readLines reads a job file. The error names every invalid line and quotes
// none: a line holds a user's message.
func readLines(file string) ([]jobLine, error) {
	body, err := readFile(file)
	if err != nil {
		return nil, err
	}
	var lines []jobLine
	var problems []error
	number := 0
	for text := range bytes.Lines(body) {
		number++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		line, err := parseLine(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s, line %d: %w", file, number, err))
			continue
		}
		line.number = number
		lines = append(lines, line)
	}
	if len(lines)+len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s holds no jobs", file))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("nothing was enqueued:\n%w", errors.Join(problems...))
	}
	return lines, nil
}

func parseLine(text []byte) (line jobLine, err error) {
	if err := decodeStrictly(text, &line); err != nil {
		return line, err
	}
	return line, cmp.Or(line.Order.Validate(), line.message.validate())
}

// decodeStrictly decodes one JSON value without unknown fields. Its errors quote
// no values.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	wrongType, isType := errors.AsType[*json.UnmarshalTypeError](err)
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errors.New("data follows the JSON object")
		}
		return nil
	case isType:
		field := strings.NewReplacer("Order.", "", "message.", "").Replace(wrongType.Field) // without the embedded structs
		return fmt.Errorf("%s is a JSON %s", cmp.Or(field, "the line"), wrongType.Value)
	case isSyntax, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("not a JSON object")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("unknown field %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return errors.New("not_before_at is not a time: write one such as 2026-01-31T08:00:00Z") // no other field decodes itself
}
