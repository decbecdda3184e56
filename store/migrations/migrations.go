// Package migrations holds the schema of the database as numbered SQL files,
// forward only: a file that was released never changes.
package migrations

import "embed"

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS
