// Package migrations holds the schema of the database as numbered SQL files. They are
// forward only: a released file never changes, and every change of the schema is a new
// file.
package migrations

import "embed"

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS
