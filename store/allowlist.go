package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/store/db"
)

// An AllowList holds the depot paths that may be read, and the paths among them that
// may not. The order of paths has no meaning.
type AllowList struct {
	Allowed   []string `json:"allowed"`
	Embargoed []string `json:"embargoed"`
}

// sorted returns l with each path once, so that two lists of the same paths are
// equal.
func (l AllowList) sorted() AllowList {
	unique := func(paths []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(paths)))
	}
	return AllowList{append([]string{}, unique(l.Allowed)...), append([]string{}, unique(l.Embargoed)...)}
}

// Changes returns the difference between earlier and l, a line per path: "allow" or
// "embargo" with a sign before it.
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

// An AllowListVersion is an allow list that was put in force (security 9.1.5).
type AllowListVersion struct {
	ID        int64     `json:"version"`
	AppliedAt time.Time `json:"applied_at"`
	Who       string    `json:"who"`
	Login     string    `json:"login"` // set by the database
	Reason    string    `json:"reason"`
	AllowList
}

// AllowListVersions returns every version, oldest first.
func (d *DB) AllowListVersions(ctx context.Context) ([]AllowListVersion, error) {
	rows, err := d.AllowlistVersions(ctx)
	return convert(rows, err, asAllowListVersion)
}

// AppliedAllowList returns the version in force. The error has class NOT_FOUND if no
// allow list was applied.
func (d *DB) AppliedAllowList(ctx context.Context) (AllowListVersion, error) {
	row, err := d.NewestAllowlist(ctx)
	if postgres.NoRow(err) {
		return AllowListVersion{}, failure.Errorf(failure.NotFound, "no allow list was applied")
	}
	return asAllowListVersion(row), err
}

// ApplyAllowList puts a list in force and returns its version and the changes. If the
// list is in force, it creates no version. It records who, why and the changes in the
// audit log in the same transaction (security 9.1.5).
func (d *DB) ApplyAllowList(ctx context.Context, list AllowList, who, reason string) (AllowListVersion, []string, error) {
	var version AllowListVersion
	var changes []string
	list = list.sorted()
	err := d.inTx(ctx, "apply allow list", func(q *db.Queries) error {
		if err := q.LockAllowlist(ctx); err != nil {
			return err
		}
		row, err := q.NewestAllowlist(ctx)
		if err != nil && !postgres.NoRow(err) {
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
