package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (a *app) enqueue() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "enqueue --file FILE",
		Short: "Enqueue the jobs of a file, all of them or none",
		Long: `Enqueue the jobs of a file that holds one JSON object per line. If a line is
invalid, nothing is enqueued. A job that exists is not changed. With --json it prints one
object per job.`,
		Example: `  complaint-rewrite enqueue --file jobs.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.UsageError{Err: errors.New("enqueue needs --file FILE")}
			}
			c, err := a.settings("allow_cleartext", "database", "keyset")
			if err != nil {
				return err
			}
			receipts, err := enqueueFile(cmd.Context(), c, file)
			if err != nil {
				return err
			}
			return printReceipts(cmd.OutOrStdout(), receipts, a.json)
		},
	}
	addFileFlag(cmd, &file, "")
	return cmd
}

func enqueueFile(ctx context.Context, c *settings, file string) ([]rewrite.Receipt, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	texts, err := c.texts("message", nil)
	if err != nil {
		return nil, err
	}
	orders := make([]rewrite.Order, len(lines))
	sealed := make([]rewrite.Sealed, len(lines))
	for i, l := range lines {
		orders[i] = l.Order
		if sealed[i], err = seal(texts, l.message); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, l.number, err)
		}
	}
	db, err := c.open(ctx, store.RoleBackend)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	receipts, err := db.Enqueue(ctx, orders, sealed)
	if invalid, ok := errors.AsType[*store.OrderError](err); ok {
		return nil, fmt.Errorf("%s, line %d: %w: nothing was enqueued", file, lines[invalid.Index].number, err)
	}
	return receipts, err
}

func printReceipts(w io.Writer, receipts []rewrite.Receipt, asJSON bool) error {
	created := 0
	for _, r := range receipts {
		if r.Created {
			created++
		}
		if asJSON {
			if err := json.NewEncoder(w).Encode(r); err != nil {
				return err
			}
		}
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintf(w, "enqueued %d jobs; %d existed already\n", created, len(receipts)-created)
	return err
}

func (a *app) seal() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "seal",
		Short: "Validate an order and encrypt its texts for complaint_rewrite.enqueue",
		Long: `Reads an order with its texts, one JSON object as enqueue reads it, and prints the
argument of the SQL function complaint_rewrite.enqueue: the validated order with the
encrypted texts.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.settings("keyset")
			if err != nil {
				return err
			}
			sealed, err := sealFile(c, file)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(sealed)
		},
	}
	addFileFlag(cmd, &file, "-")
	return cmd
}

func sealFile(c *settings, file string) (sealed rewrite.SealedOrder, err error) {
	body, err := readFile(file)
	if err != nil {
		return sealed, err
	}
	line, err := parseLine(body)
	if err != nil {
		return sealed, fmt.Errorf("%s: %w", file, err)
	}
	texts, err := c.texts("message", nil)
	if err != nil {
		return sealed, err
	}
	sealed.Order = line.Order
	sealed.Sealed, err = seal(texts, line.message)
	return sealed, err
}

func (a *app) result() *cobra.Command {
	return &cobra.Command{
		Use:   "result JOB_ID",
		Short: "Print the rewritten text of a completed job",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.settings("allow_cleartext", "database", "keyset")
			if err != nil {
				return err
			}
			text, err := readResult(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func readResult(ctx context.Context, c *settings, jobID string) (string, error) {
	db, err := c.open(ctx, store.RoleBackend)
	if err != nil {
		return "", err
	}
	defer db.Close()
	sealed, err := db.Result(ctx, jobID)
	if err != nil {
		return "", err
	}
	texts, err := c.texts("result", nil)
	if err != nil {
		return "", err
	}
	text, err := texts.Open(sealed.ID, sealed.Body)
	return string(text), err
}

func addFileFlag(cmd *cobra.Command, file *string, value string) {
	cmd.Flags().StringVarP(file, "file", "f", value, "input `FILE`; - is standard input")
}

// readFile reads a file, or standard input if its name is -.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// A blobStore has the stored form of texts.
type blobStore interface {
	PutBlob(ctx context.Context, id string, body []byte, ttl time.Duration) error
	Blob(ctx context.Context, id string) ([]byte, error)
}

// texts returns the encrypted texts of a namespace, message or result; without stored it
// encrypts and decrypts only.
func (c *settings) texts(namespace artifact.Namespace, stored blobStore) (*artifact.Store, error) {
	return artifact.New(stored, artifact.Config{Namespace: namespace, Raw: true, Keyset: c.Keyset, TTL: store.TTL, KEK: c.kek()})
}

// seal encrypts a message for the worker of the queue.
func seal(texts *artifact.Store, m message) (sealed rewrite.Sealed, err error) {
	if sealed.Text.ID, sealed.Text.Body, err = texts.Seal([]byte(m.Text)); err != nil || len(m.Preferences) == 0 {
		return sealed, err
	}
	preferences, err := json.Marshal(m.Preferences)
	if err != nil {
		return sealed, err
	}
	sealed.Preferences = new(rewrite.SealedText)
	sealed.Preferences.ID, sealed.Preferences.Body, err = texts.Seal(preferences)
	return sealed, err
}
