package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (c *app) keysetCommand() *cobra.Command {
	return group("keyset", "Make and rotate the keys that encrypt stored data", `Each keyset is a secret: give it only to the stages that need it; for the list:
criticizer help security.md. With artifacts.kek_uri, the files are encrypted by that
key.`,
		c.keysetCreateCommand(),
		c.evidenceKeyCommand(),
		c.keysetChangeCommand("rotate", "Print a keyset with a new primary key", `Prints the keyset in FILE with a new primary key. What older keys have encrypted
stays readable. criticizer help security.md has the order in which the stages get it.`, artifact.RotateKeyset),
		c.keysetChangeCommand("prune", "Print a keyset with its primary key only", `Prints the keyset in FILE with its primary key only. What older keys have encrypted
is lost: wait until it has expired, at most 30 days after the rotation.`, artifact.PruneKeyset),
	)
}

func (c *app) keysetCreateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "create DIR", Short: "Write a new keyset for each purpose, the redaction key and the evidence key",
		Long: `Writes a new keyset for each purpose into DIR: raw-keyset, redacted-keyset,
report-keyset and answers-keyset; redaction-key and evidence-key.
Files that exist are kept. Name each file in a variable such as
CRITICIZER_RAW_KEYSET_FILE, for the stages that need it.`,
		Example:     "  criticizer keyset create /etc/criticizer/secrets",
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			kek, err := c.kek()
			if err != nil {
				return err
			}
			for _, purpose := range settings.KeysetPurposes {
				err := c.createKey(filepath.Join(args[0], purpose+"-keyset"), func() (secret.Value, error) { return artifact.NewKeyset(kek) })
				if err != nil {
					return err
				}
			}
			err = c.createKey(filepath.Join(args[0], "redaction-key"), func() (secret.Value, error) { return secret.New(rand.Text() + rand.Text()), nil })
			if err != nil {
				return err
			}
			return c.createKey(filepath.Join(args[0], "evidence-key"), evidence.Generate)
		},
	}
}

// createKey writes a new key to a file, unless the file exists. The file appears with its
// whole content: after a crash the next run makes the key or keeps a complete one.
func (c *app) createKey(path string, generate func() (secret.Value, error)) error {
	made, err := generate()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return advise(err, "name a directory that exists and that you may write to")
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = fmt.Fprintln(file, made.Reveal())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	switch err := os.Link(file.Name(), path); { // unlike a rename, it never replaces a key
	case errors.Is(err, fs.ErrExist):
		fmt.Fprintln(c.stdout, path+" exists, kept")
	case err != nil:
		return advise(fmt.Errorf("write %s: %w", path, err), "name a directory on a file system with hard links")
	default:
		fmt.Fprintln(c.stdout, path)
	}
	return nil
}

// keysetChangeCommand prints the keyset of a file after a change.
func (c *app) keysetChangeCommand(name, short, long string, change func(secret.Value, artifact.KEK) (secret.Value, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " FILE", Short: short, Long: long,
		Example:     fmt.Sprintf("  criticizer keyset %s raw-keyset > raw-keyset.new", name),
		Annotations: map[string]string{rawOutput: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			kek, err := c.kek()
			if err != nil {
				return err
			}
			old, err := secret.ReadFile("FILE", args[0])
			changed := old
			if err == nil {
				changed, err = change(old, kek)
			}
			if err != nil {
				return advise(err, "name the file of a keyset; to make one: criticizer keyset create DIR")
			}
			fmt.Fprintln(c.stdout, changed.Reveal())
			return nil
		},
	}
}

// kek returns the key of the configuration that encrypts keysets.
func (c *app) kek() (artifact.KEK, error) {
	cfg, err := c.config()
	if err != nil {
		return artifact.KEK{}, err
	}
	return cfg.Artifacts.KEK, nil
}

func (c *app) evidenceKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "evidence", Short: "Print a new or rotated value for CRITICIZER_EVIDENCE_KEY",
		Long: `Prints a new value for CRITICIZER_EVIDENCE_KEY, the secret of stage notify that
makes its mails and posts recognizable. With --rotate it prints the present value
with another key, which signs from one hour later on: criticizer help delivery.md.`,
		Example:     "  criticizer keyset evidence > /etc/criticizer/secrets/evidence-key",
		Annotations: map[string]string{rawOutput: "yes"},
	}
	rotate := cmd.Flags().Bool("rotate", false, "add a key to CRITICIZER_EVIDENCE_KEY")
	cmd.RunE = func(*cobra.Command, []string) error {
		made, err := evidence.Generate()
		if *rotate {
			var old secret.Value
			if old, err = secret.Lookup("CRITICIZER_EVIDENCE_KEY", c.getenv); err != nil {
				return failure.New(failure.ConfigInvalid, err)
			}
			made, err = evidence.Rotate(old)
		}
		if err != nil {
			return advise(err, "set CRITICIZER_EVIDENCE_KEY_FILE to the file of the workers of stage notify")
		}
		fmt.Fprintln(c.stdout, made.Reveal())
		return nil
	}
	return cmd
}

// tokens returns the keys in the message of d, none without CRITICIZER_EVIDENCE_KEY.
func (c *app) tokens(d store.OutboxEntry) []string {
	cfg, err := c.config(settings.RoleOperator)
	if err != nil {
		return nil
	}
	keys, err := cfg.NewEvidenceKeys()
	if err != nil {
		return nil
	}
	sent := time.Now()
	if d.LastAttemptAt != nil {
		sent = *d.LastAttemptAt
	}
	tokens, _ := keys.Tokens(keyOf(d), sent)
	return tokens
}
