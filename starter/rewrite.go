package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (a *app) rewrite() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rewrite",
		Short: "Enqueue complaint rewrites and print their results",
	}
	cmd.AddCommand(a.enqueue(), a.seal(), a.result())
	return cmd
}

func (a *app) enqueue() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "enqueue --file FILE",
		Short: "Enqueue the jobs of a file, all of them or none",
		Long: `Enqueue the jobs of a file that holds one JSON object per line. If a line is
invalid, nothing is enqueued. A job that exists is not changed.`,
		Example: `  starter rewrite enqueue --file jobs.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.UsageError{Err: errors.New("enqueue needs --file FILE")}
			}
			cfg, err := a.loadBackend()
			if err != nil {
				return err
			}
			receipts, err := enqueueFile(cmd.Context(), cfg, file)
			if err != nil {
				return err
			}
			return printReceipts(cmd.OutOrStdout(), receipts, asJSON)
		},
	}
	addFileFlag(cmd, &file, "")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per job")
	return cmd
}

func enqueueFile(ctx context.Context, cfg *settings.Config, file string) ([]rewrite.Receipt, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(cfg)
	if err != nil {
		return nil, err
	}
	orders := make([]rewrite.Order, len(lines))
	sealed := make([]rewrite.Sealed, len(lines))
	for i, l := range lines {
		orders[i] = l.Order
		if sealed[i], err = sealer.seal(l.message); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, l.number, err)
		}
	}
	db, err := openDatabase(ctx, cfg)
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
	_, err := fmt.Fprintf(w, "enqueued %d rewrite jobs; %d existed already\n", created, len(receipts)-created)
	return err
}

func (a *app) seal() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "seal",
		Short: "Encrypt a message for criticizer.enqueue_rewrite",
		Long: `Read a message as JSON and print its encrypted form, which a backend passes to
the SQL function criticizer.enqueue_rewrite.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.loadBackend()
			if err != nil {
				return err
			}
			sealed, err := sealFile(cfg, file)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(sealed)
		},
	}
	addFileFlag(cmd, &file, "-")
	return cmd
}

func sealFile(cfg *settings.Config, file string) (rewrite.Sealed, error) {
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
	sealer, err := newSealer(cfg)
	if err != nil {
		return rewrite.Sealed{}, err
	}
	return sealer.seal(m)
}

func (a *app) result() *cobra.Command {
	return &cobra.Command{
		Use:   "result JOB_ID",
		Short: "Print the rewritten text of a completed job",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.loadBackend()
			if err != nil {
				return err
			}
			text, err := readResult(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func readResult(ctx context.Context, cfg *settings.Config, jobID string) (string, error) {
	db, err := openDatabase(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer db.Close()
	sealed, err := db.Rewrites().Result(ctx, jobID)
	if err != nil {
		return "", err
	}
	sealer, err := newSealer(cfg)
	if err != nil {
		return "", err
	}
	text, err := sealer.texts.Open(sealed.ID, sealed.Body)
	return string(text), err
}

func openDatabase(ctx context.Context, cfg *settings.Config) (*store.DB, error) {
	return store.Open(ctx, slog.New(slog.DiscardHandler), store.Config{URL: cfg.Database.URL, ClearText: cfg.AllowsClearText("database")}, store.RoleBackend)
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

// A sealer encrypts and decrypts texts of the rewrite queue.
type sealer struct{ texts *artifact.Store }

func newSealer(cfg *settings.Config) (sealer, error) {
	texts, err := artifact.New(nil, artifact.Config{
		Namespace: review.NamespaceRewrite, Keyset: cfg.Keysets.Rewrite, TTL: artifact.RewriteTTL,
		KEK: artifact.KEK{URI: cfg.Artifacts.KEKURI, Token: cfg.Artifacts.KEKToken},
	})
	return sealer{texts}, err
}

// seal encrypts a message for the worker of the queue.
func (s sealer) seal(m message) (sealed rewrite.Sealed, err error) {
	if sealed.Text.ID, sealed.Text.Body, err = s.texts.Seal([]byte(m.Text)); err != nil || len(m.Preferences) == 0 {
		return sealed, err
	}
	preferences, err := json.Marshal(m.Preferences)
	if err != nil {
		return sealed, err
	}
	sealed.Preferences = new(rewrite.SealedText)
	sealed.Preferences.ID, sealed.Preferences.Body, err = s.texts.Seal(preferences)
	return sealed, err
}

// loadBackend reads the sections of a backend.
func (a *app) loadBackend() (*settings.Config, error) {
	cfg, err := settings.Load(a.configPath, a.getenv)
	if err != nil {
		return nil, err
	}
	return cfg, cfg.Check(settings.RoleBackend)
}
