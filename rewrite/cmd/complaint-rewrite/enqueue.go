package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
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
	texts, err := c.texts(store.Blobs{})
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
	receipts, err := db.Rewrites().Enqueue(ctx, orders, sealed)
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
		Short: "Encrypt a message for criticizer.enqueue_rewrite",
		Long: `Read a message as JSON and print its encrypted form, which a backend passes to
the SQL function criticizer.enqueue_rewrite.`,
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

func sealFile(c *settings, file string) (rewrite.Sealed, error) {
	body, err := readFile(file)
	if err != nil {
		return rewrite.Sealed{}, err
	}
	var m message
	if err := decodeStrictly(body, &m); err != nil {
		return rewrite.Sealed{}, fmt.Errorf("%s: %w", file, err)
	}
	if err := m.validate(); err != nil {
		return rewrite.Sealed{}, fmt.Errorf("%s: %w", file, err)
	}
	texts, err := c.texts(store.Blobs{})
	if err != nil {
		return rewrite.Sealed{}, err
	}
	return seal(texts, m)
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
	sealed, err := db.Rewrites().Result(ctx, jobID)
	if err != nil {
		return "", err
	}
	texts, err := c.texts(store.Blobs{})
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

// texts returns the store of the encrypted texts; a zero b encrypts and decrypts only.
func (c *settings) texts(b store.Blobs) (*artifact.Store, error) {
	return artifact.New(b, artifact.Config{Namespace: review.NamespaceRewrite, Keyset: c.Keyset, TTL: artifact.RewriteTTL, KEK: c.kek()})
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
