package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
)

// An AllowList is what may be read of a depot, and what not although it is
// allowed. The order of paths means nothing.
type AllowList struct {
	Allowed   []string `json:"allowed"`
	Embargoed []string `json:"embargoed"`
}

// sorted has each path once: two lists that mean the same are then equal.
func (l AllowList) sorted() AllowList {
	unique := func(paths []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(paths)))
	}
	return AllowList{append([]string{}, unique(l.Allowed)...), append([]string{}, unique(l.Embargoed)...)}
}

// Changes returns what makes l of earlier, a line per path: "allow" or "embargo"
// with a sign before it.
func (l AllowList) Changes(earlier AllowList) []string {
	var lines []string
	compare := func(what string, before, after []string) {
		for _, path := range before {
			if !slices.Contains(after, path) {
				lines = append(lines, "-"+what+" "+path)
			}
		}
		for _, path := range after {
			if !slices.Contains(before, path) {
				lines = append(lines, "+"+what+" "+path)
			}
		}
	}
	l, earlier = l.sorted(), earlier.sorted()
	compare("allow", earlier.Allowed, l.Allowed)
	compare("embargo", earlier.Embargoed, l.Embargoed)
	return lines
}

// An AllowListVersion is an allow-list that was put in force (security 9.1.5).
type AllowListVersion struct {
	ID        int64     `json:"version"`
	AppliedAt time.Time `json:"applied_at"`
	Who       string    `json:"who"`
	Login     string    `json:"login"` // the database's own word for who it was
	Reason    string    `json:"reason"`
	AllowList
}

// AllowListVersions returns every version there was, oldest first.
func (d *DB) AllowListVersions(ctx context.Context) ([]AllowListVersion, error) {
	rows, err := d.q.AllowlistVersions(ctx)
	versions := make([]AllowListVersion, len(rows))
	for i, row := range rows {
		versions[i] = asAllowListVersion(row)
	}
	return versions, interpret("read versions of the allow-list", err)
}

// AppliedAllowList returns the version in force; the error has class NOT_FOUND
// if none was ever applied.
func (d *DB) AppliedAllowList(ctx context.Context) (AllowListVersion, error) {
	row, err := d.q.NewestAllowlist(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return AllowListVersion{}, failure.Errorf(failure.NotFound, "no allow-list was ever applied")
	}
	return asAllowListVersion(row), interpret("read the allow-list in force", err)
}

// ApplyAllowList puts a list in force and returns its version and what it
// changed. A list that is in force already changes nothing and makes no version.
// Who, why and what are in the audit log when it returns (security 9.1.5).
func (d *DB) ApplyAllowList(ctx context.Context, list AllowList, who, reason string) (AllowListVersion, []string, error) {
	var version AllowListVersion
	var changes []string
	list = list.sorted()
	err := d.inTx(ctx, "apply allow-list", func(q *db.Queries) error {
		if err := q.LockAllowlist(ctx); err != nil {
			return err
		}
		row, err := q.NewestAllowlist(ctx)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		version = asAllowListVersion(row)
		if changes = list.Changes(version.AllowList); len(changes) == 0 {
			return nil
		}
		row, err = q.InsertAllowlist(ctx, db.InsertAllowlistParams{Who: who, Reason: reason, Allowed: list.Allowed, Embargoed: list.Embargoed})
		if err != nil {
			return err
		}
		version = asAllowListVersion(row)
		return audit(ctx, q, fmt.Sprintf("allowlist:%d", version.ID), who, "allowlist.apply", map[string]any{"reason": reason, "changes": changes})
	})
	return version, changes, err
}

func asAllowListVersion(row db.AllowlistVersion) AllowListVersion {
	return AllowListVersion{
		ID: row.ID, AppliedAt: row.AppliedAt, Who: row.Who, Login: row.Login, Reason: row.Reason,
		AllowList: AllowList{row.Allowed, row.Embargoed},
	}
}
