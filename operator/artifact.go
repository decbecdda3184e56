package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

const artifactUsage = `usage: criticizer artifact show ID -reason TEXT
       criticizer artifact rekey

  show   print the content of an artifact, such as raw:6f1b... from a workflow's
         history. Who reads it and why is in the audit log before it is printed.
         The login of CRITICIZER_DATABASE_URL needs the role criticizer_reader
  rekey  print CRITICIZER_ARTIFACT_KEYSET with a new primary key. What older keys
         have sealed can still be read. The output is a secret: redirect it into
         a file that only the workers may read, give it to all of them, and drop
         the old keys a month later, when all they sealed has been deleted

Both need CRITICIZER_ARTIFACT_KEYSET.

flags:
  -reason TEXT  why the content must be seen, such as a ticket

examples:
  criticizer artifact show raw:6f1b0c2d -reason "INC-7: garbled diff"
  criticizer artifact rekey > artifact-keyset.new

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// artifacts implements criticizer artifact.
func artifacts(ctx context.Context, args []string, c console) error {
	flags := c.flags("artifact", artifactUsage)
	if err := flags.parse(args); err != nil {
		return err
	}
	actions := map[string]command{"show": showArtifact, "rekey": rekey}
	action, ok := actions[flags.Arg(0)]
	if !ok {
		return notOne("artifact", flags.Arg(0), "show", "rekey")
	}
	return action(ctx, flags.Args()[1:], c)
}

// showArtifact is the human way to what is stored (security 9.4.3).
func showArtifact(ctx context.Context, args []string, c console) error {
	flags := c.flags("show", artifactUsage)
	reason := flags.String("reason", "", "")
	ids, err := flags.parseMixed(args)
	if err != nil {
		return err
	}
	if len(ids) != 1 {
		return badUsage("show wants one artifact: got %s", plural(len(ids), "argument"))
	}
	ref := review.ArtifactRef(ids[0])
	ns, err := namespaceOf(ref)
	if err != nil {
		return err
	}
	why, err := statement("reason", *reason)
	if err != nil {
		return err
	}
	body, err := c.readArtifact(ctx, ns, ref, why)
	if err != nil {
		return err
	}
	_, err = c.stdout.Write(body)
	return err
}

// readArtifact returns what is stored, and leaves a record of who read it and
// why, or of who was refused.
func (c console) readArtifact(ctx context.Context, ns review.Namespace, ref review.ArtifactRef, why string) ([]byte, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, slog.New(slog.DiscardHandler), cfg.Database.URL, store.RoleReader)
	if failure.ClassOf(err) == failure.PermissionDenied {
		return nil, c.refuseReading(ctx, ref, why)
	}
	if err != nil {
		return nil, adviseDatabase(err)
	}
	defer db.Close()
	stored, err := artifact.New(db.Reading(ns, c.operator(), why), ns, cfg.Artifacts.Keyset, cfg.Artifacts.RawTTL)
	if err != nil {
		return nil, adviseKeyset(err)
	}
	return stored.Get(ctx, ref)
}

// refuseReading leaves a record of somebody who may not read artifacts.
func (c console) refuseReading(ctx context.Context, ref review.ArtifactRef, reason string) error {
	err := failure.Errorf(failure.PermissionDenied, "read artifact %s: the login of CRITICIZER_DATABASE_URL lacks the role %s", ref, store.RoleReader)
	if db, _, openErr := c.database(ctx); openErr == nil {
		defer db.Close()
		if auditErr := db.RecordRefusedReading(ctx, ref, c.operator(), reason); auditErr != nil {
			return fmt.Errorf("%w; and the refusal is not on record: %w", err, auditErr)
		}
	}
	return advise(err, "have an administrator of the database grant %s to those who may see raw content", store.RoleReader)
}

func namespaceOf(ref review.ArtifactRef) (review.Namespace, error) {
	name, id, _ := strings.Cut(string(ref), ":")
	ns := review.Namespace(name)
	if id == "" || !slices.Contains([]review.Namespace{review.NamespaceRaw, review.NamespaceRedacted, review.NamespaceReport}, ns) {
		return "", badUsage("%q is no artifact: want raw:ID, redacted:ID or report:ID", ref)
	}
	return ns, nil
}

// rekey rotates the keyset (security 9.3.5). What is stored is not sealed anew:
// it is gone within a month, and no role may both read and write it.
func rekey(_ context.Context, args []string, c console) error {
	if err := c.noArguments("rekey", artifactUsage, args); err != nil {
		return err
	}
	old, err := secret.Lookup("CRITICIZER_ARTIFACT_KEYSET", c.getenv)
	if err != nil {
		return failure.New(failure.ConfigInvalid, err)
	}
	rotated, err := artifact.RotateKeyset(old)
	if err != nil {
		return adviseKeyset(err)
	}
	fmt.Fprintln(c.stdout, rotated.Reveal())
	return nil
}

func adviseKeyset(err error) error {
	return advise(err, "set CRITICIZER_ARTIFACT_KEYSET, or CRITICIZER_ARTIFACT_KEYSET_FILE, to the keyset of the workers; criticizer keyset makes a first one")
}
