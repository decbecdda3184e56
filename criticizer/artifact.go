package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/operator"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

func (c *app) artifactCommand() *cobra.Command {
	return group("artifact", "Print a stored artifact", "", c.artifactShowCommand())
}

func (c *app) artifactShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Print the content of an artifact",
		Long: `Prints the content of an artifact, such as raw:6f1b... from a workflow's history.
The audit log records who read it and why. The login needs the role
criticizer_reader, and the keyset of the artifact must be set, such as
CRITICIZER_RAW_KEYSET.`,
		Example:     `  criticizer artifact show raw:6f1b0c2d --reason "INC-7: garbled diff"`,
		Annotations: map[string]string{rawOutput: "yes"},
	}
	reason := operator.StatementFlag(cmd, "reason", "", "why: `TEXT` for the audit log (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref := review.ArtifactRef(args[0])
		ns, err := namespaceOf(ref)
		if err != nil {
			return err
		}
		body, err := c.readArtifact(cmd.Context(), ns, ref, *reason)
		if err != nil {
			return err
		}
		_, err = c.stdout.Write(body)
		return err
	}
	return cmd
}

// readArtifact returns the content of an artifact. A person may read it only for a
// reason; the audit log records each access, also a refused one (security 9.4.3).
func (c *app) readArtifact(ctx context.Context, ns review.Namespace, ref review.ArtifactRef, why string) ([]byte, error) {
	cfg, err := c.config(settings.RoleOperator)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, quiet, cfg.DatabaseConfig(), store.RoleReader)
	if failure.ClassOf(err) == failure.PermissionDenied {
		return nil, c.refuseAccess(ctx, cfg, ref, why)
	}
	if err != nil {
		return nil, adviseDatabase(cfg, err)
	}
	defer db.Close()
	stored, err := artifact.New(db.AuditedReader(ns, operator.Name(c.getenv), why), cfg.ArtifactConfig(ns))
	if err != nil {
		return nil, advise(err, "set CRITICIZER_%[1]s_KEYSET, or CRITICIZER_%[1]s_KEYSET_FILE, to the keyset of the workers", strings.ToUpper(string(ns)))
	}
	return stored.Show(ctx, ref)
}

// refuseAccess records that a person without the role tried to read an artifact.
func (c *app) refuseAccess(ctx context.Context, cfg *settings.Config, ref review.ArtifactRef, reason string) error {
	err := failure.Errorf(failure.PermissionDenied, "read artifact %s: the login of CRITICIZER_DATABASE_URL lacks the role %s", ref, store.RoleReader)
	if db, _, openErr := c.database(ctx); openErr == nil {
		defer db.Close()
		if auditErr := db.RecordDeniedRead(ctx, ref, operator.Name(c.getenv), reason); auditErr != nil {
			return fmt.Errorf("%w; and the refusal could not be recorded: %w", err, auditErr)
		}
	}
	return advise(err, "if you may read it, have an administrator of the database run: %s", cfg.Database.Grant(string(store.RoleReader)))
}

func namespaceOf(ref review.ArtifactRef) (review.Namespace, error) {
	name, id, _ := strings.Cut(string(ref), ":")
	ns := review.Namespace(name)
	if id == "" || !slices.Contains([]review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceReport}, ns) {
		return "", badUsage("%q is not an artifact: want raw:ID, redacted:ID or report:ID", ref)
	}
	return ns, nil
}
